"""One writer per format: a data set with some pairs gone or mended, in the format it came in. The original is read."""
