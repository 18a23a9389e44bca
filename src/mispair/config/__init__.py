"""Assemble the sections owned elsewhere into one run configuration."""
