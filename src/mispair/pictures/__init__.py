"""Pictures from strangers: where they may lie, how they are read, what they look like once decoded."""
