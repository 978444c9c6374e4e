"""Labelled faulty services in virtual time: what a diagnosis says of them, against what is true."""
