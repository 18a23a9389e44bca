"""`mispair doctor`: is everything here that mispair needs?"""


def doctor() -> None:
    """Check this machine: Python, torch, device, memory, disk, extras; each with the remedy if it is missing."""
