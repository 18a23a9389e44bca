"""mispair: cross-modal retrieval on pairs nobody can trust.

The public names. They are imported when first used, so that `import mispair` and `mispair --help` stay instant.
"""

from importlib import import_module
from typing import Any

from mispair.version import __version__

_PUBLIC = {
    "Alignment": "mispair.types",
    "InputError": "mispair.errors",
    "MixtureFit": "mispair.functional.mixture",
    "fit_beta_mixture": "mispair.functional.mixture",
    "fit_gaussian_mixture": "mispair.functional.mixture",
    "Verdicts": "mispair.audit.verdicts",
    "partial_transport": "mispair.functional.transport",
    "quick_audit": "mispair.audit.quick",
    "retrieval_metrics": "mispair.functional.ranks",
}

__all__ = [  # noqa: PLE0604  (the names are strings; the linter cannot see through the dictionary)
    "__version__",
    "audit",
    *_PUBLIC,
]


def __getattr__(name: str) -> Any:
    if name == "audit":  # the package itself: it can be called
        return import_module("mispair.audit")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mispair' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
