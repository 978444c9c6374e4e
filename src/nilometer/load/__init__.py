"""The load generator: workers that own their sockets, stamp first, parse later, and keep a journal."""
