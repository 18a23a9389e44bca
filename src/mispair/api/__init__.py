"""The front door for Python: what the command line does, as functions. `import mispair as mp` brings them all.

run = mp.train("pairs.parquet", features="images.npy", out="runs/a")
verdicts = mp.audit(run)
verdicts.worst(10)
"""

from mispair.api.auditing import audit, fix, make_report, quick_audit, undo_fix
from mispair.api.data_sets import check, corrupt
from mispair.api.encoding import audit_pictures, embed
from mispair.api.experiments import run_experiment
from mispair.api.exporting import export
from mispair.api.plugins import list_methods, register
from mispair.api.searching import index, search
from mispair.api.training import evaluate, load, train

__all__ = [
    "audit",
    "audit_pictures",
    "check",
    "corrupt",
    "embed",
    "evaluate",
    "export",
    "fix",
    "index",
    "list_methods",
    "load",
    "make_report",
    "quick_audit",
    "register",
    "run_experiment",
    "search",
    "train",
    "undo_fix",
]
