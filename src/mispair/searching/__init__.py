"""Find pictures by words, captions by a picture, pairs like a pair: an index of vectors on disk, and how to ask it."""
