"""Hand-written forward and backward passes of the backbones."""
