"""One paper per file."""
