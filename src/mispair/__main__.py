"""`python -m mispair` is `mispair` (torchrun needs a module to start)."""

from mispair.cli.app import main

if __name__ == "__main__":
    main()
