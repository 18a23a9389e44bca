"""Which pairs are wrong, what kind of wrong, and what they should have been."""
