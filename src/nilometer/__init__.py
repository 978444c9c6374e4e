"""nilometer: the performance-engineering workbench for LLM inference services."""

__version__ = "0.1.0"
