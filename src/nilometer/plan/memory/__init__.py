"""Where the memory of a device goes, and what the KV cache that is left holds."""
