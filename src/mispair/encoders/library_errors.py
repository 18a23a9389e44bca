"""What goes wrong inside the library of hub models, as one sentence: damaged files, a package missing or broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mispair.encoders.weights import REMEDY
from mispair.errors import InputError


@contextmanager
def explained(name: str, what: str = "be loaded") -> Iterator[None]:
    """Whatever goes wrong while loading, or in a network whose files do not fit each other, becomes one sentence."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's
            raise
        _refuse_broken_torchvision()
        if isinstance(error, ModuleNotFoundError) and error.name == "transformers":
            raise InputError(f"the encoder '{name}' needs the extra 'hub', so try: {REMEDY}") from None
        raise InputError(
            f"the encoder '{name}' cannot {what} ({_said(error)}); if its files are damaged, download or save it again"
        ) from error


def _said(error: Exception) -> str:
    """What the library says, shortened: of a key that is missing it says the key alone."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return " ".join(str(error).split())[:200] or "it does not say why"


def _refuse_broken_torchvision() -> None:
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except Exception as error:  # noqa: BLE001  a library of another torch can fail in any way
        raise InputError(
            f"torchvision is installed but does not work with this torch ({str(error)[:80]}), and breaks transformers; "
            "mispair does not need it, so try: pip uninstall torchvision"
        ) from None
