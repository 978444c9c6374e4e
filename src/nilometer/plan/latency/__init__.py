"""How long it takes: work, steps, a closed loop of requests, and its scaling by measurement."""
