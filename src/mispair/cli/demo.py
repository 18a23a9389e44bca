"""`mispair demo`: the main job, on embedded data."""


def demo() -> None:
    """Show what mispair does, on data it generates itself."""
