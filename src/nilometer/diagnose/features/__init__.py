"""The features of a level, by theme: small functions from the streams of a run to a figure, None = not measured."""
