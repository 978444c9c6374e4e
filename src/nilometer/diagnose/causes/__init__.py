"""One small function per cause: a case in, an opinion out. Which there are stands in `rules.RULES`."""
