"""What is done with a target, start to end: one load test, several of them, the embedded engine's first baseline."""
