"""The front door for Python: what the command line does, as functions. `import mispair as mp` brings them all.

run = mp.train("pairs.parquet", features="images.npy", out="runs/a")
verdicts = mp.audit(run)
verdicts.worst(10)

`mispair demo` alone has no function: it is a tour that prints as it goes.
"""

from mispair.api.auditing import audit, fix, make_report, quick_audit, undo_fix
from mispair.api.data_sets import check, corrupt
from mispair.api.encoding import audit_pictures, embed
from mispair.api.experiments import run_experiment
from mispair.api.exporting import export
from mispair.api.listing import inspect_machine, list_encoders, list_experiments, list_methods, list_runs
from mispair.api.plugins import register
from mispair.api.reviewing import export_decisions, import_decisions, review, review_status, serve
from mispair.api.searching import index, open_index, search
from mispair.api.sharding import audit_on_ray, audit_shard, merge_audit, merge_embedded
from mispair.api.training import evaluate, load, train

__all__ = [
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
    "quick_audit",
    "register",
    "review",
    "review_status",
    "run_experiment",
    "search",
    "serve",
    "train",
    "undo_fix",
]
