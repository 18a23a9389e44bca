"""Read a data set once and say what stands in it."""
