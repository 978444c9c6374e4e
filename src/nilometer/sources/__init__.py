"""Files of others -> values: data sets, traces and logs as batches of requests, with line numbers for what is
wrong; `results`: result files of other tools as runs."""
