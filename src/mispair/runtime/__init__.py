"""The training loop and what it stands on; names no method."""
