"""The whole page of an experiment: what is finished, how to read it, and where it comes from."""

from __future__ import annotations

from pathlib import Path

from mispair.counted import counted
from mispair.experiments.content import Page
from mispair.experiments.figures import draw
from mispair.experiments.grid import same_noise
from mispair.experiments.grid_file import GridFile, read_grid_file
from mispair.experiments.reading import Grid, read_grid
from mispair.experiments.result_tables import records, result_tables


def make_page(out: Path) -> Page:
    """All tables and figures of the experiment in `out`, from whatever is finished."""
    down, spec = read_grid_file(out)
    grid = read_grid(out, spec, down.kind, down.seeds)
    about = [f"{spec.shows[:1].upper()}{spec.shows[1:]}. Data: {down.data} (settings of {grid.kind})."]
    if spec.about:
        about.append(spec.about)
    drawn = draw(grid)
    return Page(
        spec.name,
        spec.title,
        tuple(about),
        (*drawn.tables, *result_tables(grid)),
        (*drawn.notes, *_reading(grid), *_origin(grid, down)),
        tuple(records(grid)),
        drawn.drawings,
    )


def _reading(grid: Grid) -> list[str]:
    counts = {len(by_seed) for by_seed in grid.results.values()}
    splits = {label for by_seed in grid.results.values() for r in by_seed.values() for label, _ in r.galleries}
    sentences = [
        f"Recalls in percent on {' and '.join(sorted(splits)) or 'nothing yet'}; ties count against the model. "
        "Mean ± sample standard deviation over seeds; bold where the best leads the runner-up by more than the larger "
        "of their two spreads."
    ]
    if counts and max(counts) == 1:
        sentences.append("One seed: no spread is known, so nothing is bold.")
    if any(line.row.knows_truth for line in grid.lines):
        sentences.append(
            "The row that knows the truth was trained on the truly matched pairs only; it is a yardstick and takes no "
            "part in the comparison."
        )
    if any(grid.facts(column) for column in grid.columns):
        sentences.append(
            "Published rows are the paper's own figures (Han et al., CVPR 2024), not measured here; rows without"
            " recalls are those of later papers, which print them under noise of their own."
        )
    for column in grid.columns:
        noise: dict[int, set[str]] = {}
        for line in grid.lines:
            for seed, result in grid.of(line, column).items():
                if result.noise is not None:
                    noise.setdefault(seed, set()).add(result.noise)
        if not noise:
            continue
        shown = "; ".join(
            f"seed {s}: {', '.join(sorted(h[:12] for h in hashes))}" for s, hashes in sorted(noise.items())
        )
        fair = all(same_noise(hashes) for hashes in noise.values())
        verdict = "the same for all rows" if fair else "DIFFERENT between rows: they cannot be compared"
        sentences.append(f"Noise of {grid.label(column)}, {verdict}: {shown}.")
    return sentences


def _origin(grid: Grid, down: GridFile) -> list[str]:
    code = sorted({result.code for by_seed in grid.results.values() for result in by_seed.values()})
    cells = sum(len(by_seed) for by_seed in grid.results.values())
    return [
        f"{counted(cells, 'cell')}. Made by {_commands(grid, down)}. "
        "Seconds are those of the clock, with whatever else the machine did: compare passes.",
        "Code: " + "; ".join(code) + ".",
        f"Hardware: {down.hardware}. Versions: {down.versions}.",
    ]


def _commands(grid: Grid, down: GridFile) -> str:
    """What was typed; of a grid that was filled in many parts the one command that makes the same."""
    said = down.commands
    if len(said) <= 2:
        return "; ".join(f"`{command}`" for command in said)
    whole = f"mispair experiments run {grid.spec.name} --data {down.data} -o {grid.spec.name} --seeds {down.seeds}"
    return f"`{whole}`, in {len(said)} parts (`experiment.json` has them)"
