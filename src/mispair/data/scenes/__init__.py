"""scenes: a small generated world, the data of every command that was given none.

Pictures of several objects, five captions each from a grammar, region features computed from the pixels, and the
truth of every caption about every picture.
"""

from mispair.data.scenes.build import SceneSplit, make_scenes, split_sizes
from mispair.data.scenes.truth import true_of, true_pairs
from mispair.data.scenes.write import write_scenes

__all__ = ["SceneSplit", "make_scenes", "split_sizes", "true_of", "true_pairs", "write_scenes"]
