"""The page: what was found in, one self-contained HTML file out. It reads no run, no model and no data."""
