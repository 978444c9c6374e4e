"""What a model is: from a table of known ones, a config, the header of a GGUF or safetensors file, a running server."""
