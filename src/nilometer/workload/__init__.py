"""What is asked: lengths, arrivals, prompts of an exact length, and the Calls made of them. Pure."""
