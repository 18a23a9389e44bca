"""Claims as tables anyone can remake: a spec becomes a grid of runs, the grid becomes a table."""
