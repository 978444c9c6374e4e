"""The project's own speed and truth, beside floors of the same run. By hand or `make bench`, never as a timed test."""
