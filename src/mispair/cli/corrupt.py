"""`mispair corrupt`: mismatches made on purpose, written as a noise index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from mispair.cli.options import data as data_options
from mispair.cli.options.grouping import grouped
from mispair.errors import InputError


@grouped
def corrupt(
    data: str = data_options.DATA,
    second: str | None = data_options.SECOND,
    rate: float = typer.Option(0.0, help="Share of images (protocol image) or pairs chosen, between 0 and 1."),
    protocol: str = typer.Option("image", help="image: move images with all captions; caption: move captions singly."),
    seed: int = typer.Option(0, help="The same seed gives the same index."),
    shift: int = typer.Option(0, help="Instead: captions off by this many rows, in the last RATE of the pairs."),
    start: int | None = typer.Option(None, "--from", help="With --shift: from this pair on, instead of --rate."),
    repeat: bool = typer.Option(False, "--repeat", help="Instead: one caption shown with RATE of the pairs."),
    output: Path = typer.Option(..., "-o", "--output", help="Where the index goes (.npy)."),
    split: str = typer.Option("train", help="The split to corrupt."),
    force: bool = typer.Option(False, "--force", help="Overwrite the output file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of a table."),
    *,
    table: data_options.TableOptions,
    pictures: data_options.PictureOptions,
) -> None:
    """Make mismatched pairs on purpose and write them as an index file, in the published layout.

    Protocol image writes one image row per image, protocol caption one per caption. Chosen pairs that draw their
    own image again stay right; they are counted and reported. Results made with the index carry its hash.

    Examples:

      mispair corrupt f30k_precomp --rate 0.4 --protocol image --seed 0 -o index.npy

      mispair corrupt pairs.csv --rate 0.1 --shift 3 -o shifted.npy
    """
    from mispair.atomic import write_atomically
    from mispair.data.noise import make_index, write_index
    from mispair.data.readers.dispatch import given_pairs, open_pairing
    from mispair.shell_word import in_shell

    kind = _kind(protocol, shift, repeat)
    noise: dict[str, Any] = {"rate": _share(rate), "seed": seed, "shift": shift, "start": start, "repeat": repeat}
    if kind in ("image", "caption"):
        noise["protocol"] = protocol
    if rate == 0.0 and start is None:
        raise InputError(f"--rate is missing: expected the share to corrupt, for instance --rate {0.4}")
    config = data_options.data_config(
        path=data,
        second=second,
        **table.section(),
        **pictures.section(),
        noise=noise,
    )
    _refuse_output(output, force)
    assert config.noise is not None
    source = open_pairing(config, split)
    pairs = given_pairs(source)
    index = make_index(pairs, config.noise)
    write_atomically(output, lambda path: write_index(path, index))
    shown = pairs.showing(index.images, index.texts)
    assert shown.truth is not None
    mismatched = int(shown.truth.mismatched.sum())
    facts = {
        "data": data,
        "split": split,
        "kind": kind,
        "rate": rate,
        "seed": seed,
        "pairs": len(pairs),
        "images": int(pairs.image_rows.max()) + 1,
        "chosen": index.chosen,
        "chosen_of": "images" if kind == "image" else "pairs",
        "chosen_pairs": index.chosen_pairs,
        "mismatched_pairs": mismatched,
        "fixed_points": index.chosen_pairs - mismatched,
        "hash": index.hash,
        "file": str(output),
        "entries": list(index.stored.shape),
        "notes": list(source.notes),
    }
    _print(facts, as_json)
    if split == "train" and not as_json:
        typer.echo(f"Train with these mismatches: mispair train {in_shell(data)} --noise {in_shell(output)}")


def _kind(protocol: str, shift: int, repeat: bool) -> str:
    if protocol not in ("image", "caption"):
        raise InputError(f"--protocol is image or caption, got {protocol!r}")
    if shift and repeat:
        raise InputError("--shift and --repeat are two kinds of damage: give one of them")
    return "shift" if shift else "repeat" if repeat else protocol


def _share(rate: float) -> float:
    if not 0.0 <= rate <= 1.0:
        hint = f"; did you mean {rate / 100:g}?" if 1.0 < rate <= 100.0 else ""
        raise InputError(f"--rate is a share between 0 and 1, got {rate:g}{hint}")
    return rate


def _refuse_output(output: Path, force: bool) -> None:
    if os.path.isdir(output):
        raise InputError(f"{output} is a directory; expected a file name, for instance {output / 'index.npy'}")
    if not os.path.isdir(output.parent):
        raise InputError(f"{output.parent} is not a folder; expected one for the index, so make it first")
    if os.path.lexists(output) and not force:
        raise InputError(f"{output} exists already; expected a new file, so choose another name or add --force")


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps(facts, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_header=False)
    notes = facts.pop("notes")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), _cell(value))
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table)
    for note in notes:
        console.print(f"note: {note}", style="dim", markup=False, highlight=False, soft_wrap=True)


def _cell(value: object) -> str:
    """A file name may hold bytes that are no text, or square brackets that look like markup."""
    from rich.markup import escape

    return f"{value:,}" if isinstance(value, int) else escape(str(value).encode(errors="replace").decode())
