"""How an engine was started: its command line or config, as fields of a plan."""
