"""Engines nilometer can launch, and the mock server: found, prepared, started under a keeper, stopped on every path."""
