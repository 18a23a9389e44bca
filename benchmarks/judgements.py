"""Does an audit agree with people? `python -m benchmarks.judgements RUN --crowd CROWD.tsv --expert EXPERT.tsv`

Both files list image row, caption line and judgements on the run's test split: the crowd's share of Yes (third column),
the experts' scores (third to fifth). Prints the AUC against the crowd's majority and Spearman's rank correlation with
the experts' mean, of the bare score and of the audit's evidence.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.calibration import calibrate
from mispair.auditing.judge import pair_at_random
from mispair.auditing.space import space_of
from mispair.functional.detection import auroc
from mispair.workflows.trained_run import load_run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judgements", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--crowd", type=Path, required=True)
    parser.add_argument("--expert", type=Path, required=True)
    given = parser.parse_args()
    run = load_run(given.run)
    data = run.open_split("test")
    space, table = space_of(run.models, data), data.table
    others = pair_at_random(table.image_rows, table.text_rows)

    def evidence(rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.float64]:
        return space.measure(rows, cols).evidence(len(space.images), len(space.texts))

    known = calibrate(evidence(table.image_rows, table.text_rows), evidence(*others), table.image_rows)
    for name, path in (("crowd", given.crowd), ("expert", given.expert)):
        said = np.loadtxt(path, delimiter="\t")
        rows, cols = said[:, 0].astype(np.int64), said[:, 1].astype(np.int64)
        found = evidence(rows, cols)
        for what, fits in (("score", -found[:, 0]), ("evidence", -found @ known.weights)):
            if name == "crowd":
                figure = f"AUC of the {what} against the majority {auroc(fits, said[:, 2] > 0.5):.3f}"
            else:
                figure = f"Spearman of the {what} with the mean {_spearman(fits, said[:, 2:5].mean(1)):.3f}"
            print(f"{name}, {len(said):,} judgements: {figure}")


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[inverse])


if __name__ == "__main__":
    main()
