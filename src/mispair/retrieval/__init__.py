"""Score with trained models, and rank."""
