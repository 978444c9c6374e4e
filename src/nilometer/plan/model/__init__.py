"""What a model is made of: layers, parameters, precisions, bytes of weights, ranks."""
