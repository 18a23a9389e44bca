"""mispair: cross-modal retrieval on pairs nobody can trust.

    import mispair as mp
    run = mp.train("pairs.parquet", features="images.npy", out="runs/a")
    verdicts = mp.audit(run)

The public names. They are imported when first used, so that `import mispair` and `mispair --help` stay instant.
"""

from typing import TYPE_CHECKING

from mispair.lazy_exports import lazy_exports
from mispair.version import __version__

if TYPE_CHECKING:
    from mispair.api import (
        audit,
        audit_on_ray,
        audit_pictures,
        audit_shard,
        check,
        corrupt,
        embed,
        evaluate,
        export,
        export_decisions,
        fix,
        import_decisions,
        index,
        inspect_machine,
        list_encoders,
        list_experiments,
        list_methods,
        list_runs,
        load,
        make_report,
        merge_audit,
        merge_embedded,
        open_index,
        quick_audit,
        register,
        review,
        review_status,
        run_experiment,
        search,
        serve,
        train,
        undo_fix,
    )
    from mispair.api.verdicts import Verdicts
    from mispair.errors import InputError
    from mispair.functional.mixture import MixtureFit, fit_beta_mixture, fit_gaussian_mixture
    from mispair.functional.recalls import retrieval_metrics
    from mispair.functional.transport import partial_transport
    from mispair.types import Alignment
    from mispair.workflows.searchable_index import SearchableIndex
    from mispair.workflows.trained_run import TrainedRun

_HOMES = {  # of what is not a function of mispair.api
    "Alignment": "types",
    "InputError": "errors",
    "MixtureFit": "functional.mixture",
    "SearchableIndex": "workflows.searchable_index",
    "TrainedRun": "workflows.trained_run",
    "Verdicts": "api.verdicts",
    "fit_beta_mixture": "functional.mixture",
    "fit_gaussian_mixture": "functional.mixture",
    "partial_transport": "functional.transport",
    "retrieval_metrics": "functional.recalls",
}

__all__ = [
    "Alignment",
    "InputError",
    "MixtureFit",
    "SearchableIndex",
    "TrainedRun",
    "Verdicts",
    "__version__",
    "audit",
    "audit_on_ray",
    "audit_pictures",
    "audit_shard",
    "check",
    "corrupt",
    "embed",
    "evaluate",
    "export",
    "export_decisions",
    "fit_beta_mixture",
    "fit_gaussian_mixture",
    "fix",
    "import_decisions",
    "index",
    "inspect_machine",
    "list_encoders",
    "list_experiments",
    "list_methods",
    "list_runs",
    "load",
    "make_report",
    "merge_audit",
    "merge_embedded",
    "open_index",
    "partial_transport",
    "quick_audit",
    "register",
    "retrieval_metrics",
    "review",
    "review_status",
    "run_experiment",
    "search",
    "serve",
    "train",
    "undo_fix",
]


__getattr__ = lazy_exports(__name__, {**dict.fromkeys(__all__, "api"), **_HOMES})


def __dir__() -> list[str]:
    return __all__
