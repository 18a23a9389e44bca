"""One reader per format: files in, a `Source` out."""
