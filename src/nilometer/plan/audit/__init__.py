"""What is wrong with how an engine was started."""
