"""mispair: cross-modal retrieval on pairs nobody can trust.

    import mispair as mp
    run = mp.train("pairs.parquet", features="images.npy", out="runs/a")
    verdicts = mp.audit(run)

The public names. They are imported when first used, so that `import mispair` and `mispair --help` stay instant.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mispair.version import __version__

if TYPE_CHECKING:
    from mispair.api import (
        audit,
        audit_pictures,
        check,
        corrupt,
        embed,
        evaluate,
        export,
        fix,
        index,
        list_methods,
        load,
        make_report,
        quick_audit,
        register,
        run_experiment,
        search,
        train,
        undo_fix,
    )
    from mispair.api.verdicts import Verdicts
    from mispair.errors import InputError
    from mispair.functional.mixture import MixtureFit, fit_beta_mixture, fit_gaussian_mixture
    from mispair.functional.recalls import retrieval_metrics
    from mispair.functional.transport import partial_transport
    from mispair.types import Alignment
    from mispair.workflows.trained_run import TrainedRun

_HOMES = {
    "Alignment": "types",
    "InputError": "errors",
    "MixtureFit": "functional.mixture",
    "TrainedRun": "workflows.trained_run",
    "Verdicts": "api.verdicts",
    "audit": "api",
    "audit_pictures": "api",
    "check": "api",
    "corrupt": "api",
    "embed": "api",
    "evaluate": "api",
    "export": "api",
    "fit_beta_mixture": "functional.mixture",
    "fit_gaussian_mixture": "functional.mixture",
    "fix": "api",
    "index": "api",
    "list_methods": "api",
    "load": "api",
    "make_report": "api",
    "partial_transport": "functional.transport",
    "quick_audit": "api",
    "register": "api",
    "retrieval_metrics": "functional.recalls",
    "run_experiment": "api",
    "search": "api",
    "train": "api",
    "undo_fix": "api",
}

__all__ = [
    "Alignment",
    "InputError",
    "MixtureFit",
    "TrainedRun",
    "Verdicts",
    "__version__",
    "audit",
    "audit_pictures",
    "check",
    "corrupt",
    "embed",
    "evaluate",
    "export",
    "fit_beta_mixture",
    "fit_gaussian_mixture",
    "fix",
    "index",
    "list_methods",
    "load",
    "make_report",
    "partial_transport",
    "quick_audit",
    "register",
    "retrieval_metrics",
    "run_experiment",
    "search",
    "train",
    "undo_fix",
]


class _Package(ModuleType):
    """`mispair.audit` and `mispair.search` stay functions when a module of the package of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("audit", "search") or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mispair' has no attribute {name!r}")
    return getattr(import_module(f"mispair.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
