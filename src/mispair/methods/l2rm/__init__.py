"""L2RM: the method (`method`), its values (`config`), and the parts of rematching, each in its file."""

from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.l2rm.method import L2RM

__all__ = ["L2RM", "L2RMConfig"]
