"""The nouns every stage hands to the next. No I/O, no clock reading, no sentence."""
