"""What could be done better: objectives, options in the guide's order, ways to fit, copies, costs."""
