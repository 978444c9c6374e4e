"""Result files of other tools -> Runs: each tool's fields by what they mean here, None for what has no counterpart."""
