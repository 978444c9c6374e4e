"""One HTTP/1.1 connection over a socket of our own, with receive stamps, and one blocking `fetch` on it."""
