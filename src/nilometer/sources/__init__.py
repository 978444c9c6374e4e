"""Files of others -> values: data sets, traces and logs as batches of requests, with line numbers for what is wrong."""
