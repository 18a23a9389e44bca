"""Pictures and texts -> vectors, cells or tokens: the encoders, the pipeline through them, the cache of results."""
