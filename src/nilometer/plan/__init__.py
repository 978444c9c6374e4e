"""What a model needs and what a device can give, by arithmetic: memory, latency, advice. Pure; it measures nothing.

Figures that come from outside (a published constant, a run of the user's) carry where they come from.
"""
