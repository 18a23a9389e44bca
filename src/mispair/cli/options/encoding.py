"""Options that every verb that reads pictures shares, and what they make of a data section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.options.grouping import OptionGroup, option
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.cli.progress import ProgressLine
    from mispair.data.config import DataConfig
    from mispair.workflows.embed import Encoding

_PANEL = "Pictures"
_TEXTS = "Captions as words, learned from the data, or as vectors of the encoder; the encoder's unless --cells."


@dataclass(frozen=True)
class EncodeOptions(OptionGroup):
    """How pictures are encoded."""

    encoder: str | None = option(
        None, panel=_PANEL, help="What encodes pictures: basic, siglip2-base, ...; mispair encoders."
    )
    cells: bool = option(
        False, "--cells", panel=_PANEL, help="A grid of vectors per picture instead of one, for region models."
    )
    batch: int = option(32, panel=_PANEL, min=1, help="Pictures encoded at a time.")
    workers: int | None = option(None, panel=_PANEL, min=0, help="Threads that read and decode.")

    def encoding(self, device: str | None) -> Encoding:
        """How to encode, as the options say."""
        return self._encoding(None, device)

    def _encoding(self, texts: bool | None, device: str | None) -> Encoding:
        from mispair.workflows.embed import DEFAULT, Encoding

        return Encoding(self.encoder or DEFAULT, self.cells, texts, self.batch, self.workers, device or "auto")


@dataclass(frozen=True)
class EncodeBothOptions(EncodeOptions):
    """How pictures are encoded, and whether captions are too."""

    texts: str | None = option(None, panel=_PANEL, help=_TEXTS)

    @property
    def asked(self) -> bool:
        """Whether a person said how to encode."""
        return self.encoder is not None or self.cells or self.texts is not None

    def live(self, why: str) -> dict[str, Any]:
        """Values of a data section whose pictures are read in every batch; `why`: the option that wants it."""
        if self.cells or self.texts is not None:
            raise InputError(f"{why} reads pictures and captions themselves: leave --cells and --texts out")
        if self.encoder is None:
            raise InputError(f"{why} trains the towers of an encoder: name it with --encoder clip-b32")
        from mispair.encoders.tower_inputs import TowerInputs

        return {"encoder": TowerInputs(self.encoder).name, "live": True}

    def encoding(self, device: str | None, model: str | None = None) -> Encoding:
        """How to encode, as the options say; a `model` that looks at words one by one gets words, dual vectors."""
        from mispair.models import encodes_one_vector

        texts, name = self.texts, None if model is None else model.partition(":")[0]
        if texts not in (None, "words", "encoder"):
            raise InputError(f"--texts is words or encoder, got {texts!r}")
        if name == "dual" and texts == "words":
            raise InputError("dual reads vectors of captions, not words: leave --texts words out, or use vse")
        if texts is None and name is not None and (name == "dual" or not encodes_one_vector(name)):
            texts = "encoder" if name == "dual" else "words"
        return self._encoding(None if texts is None else texts == "encoder", device)


def encoded(config: DataConfig, how: Encoding, asked: bool, progress: ProgressLine) -> DataConfig:
    """The data with features: its pictures are encoded first where it has none.

    Args:
        asked: whether a person said how to encode; then data that needs no encoding is refused, not read silently.
    """
    from mispair.workflows.embed import DEFAULT, needs_encoding, with_features

    raw = needs_encoding(config)
    done = with_features(config, how, progress)
    if not raw and asked and (done is config or how.encoder != DEFAULT or how.cells):
        raise InputError(f"{config.path} brings its features: leave --encoder, --cells and --texts out")
    if done.second is not None and config.second is None and how.texts is None:
        typer.echo(
            f"texts   captions are read as vectors of '{done.encoder}' (--texts words learns words instead)", err=True
        )
    return done


def tell_failed(features: str | None, folder: Path) -> None:
    """Put the list of the pictures that the features do without beside the results, and say so and how many."""
    import csv

    from mispair.counted import counted
    from mispair.data.embedded_folder import copy_failed

    listed = copy_failed(features, folder)
    if listed is not None:
        with listed.open(encoding="utf-8", errors="surrogateescape", newline="") as rows:
            count = sum(1 for _ in csv.reader(rows)) - 1
        are = "is" if count == 1 else "are"
        typer.echo(
            f"{counted(count, 'picture')} that cannot be used {are} listed with the reason in {listed}.", err=True
        )


def encoded_values(
    files: dict[str, Any],
    how: Encoding,
    asked: bool,
    progress: ProgressLine,
    *,
    file: Path | None = None,
    sets: Sequence[str] = (),
) -> dict[str, Any]:
    """`encoded` for values of a data section that are not validated yet.

    Args:
        file, sets: a configuration and `--set` that go with them: what they say of the data decides how it is read.
    """
    from mispair.cli.options.data import data_config

    said = [assignment for assignment in sets if assignment.startswith("data.")]
    if file is not None or said:
        from mispair.config.load import load_config

        config = load_config(file, said, {"data": files}).data
    else:
        config = data_config(**{name: value for name, value in files.items() if name != "sides"})
    done = encoded(config, how, asked, progress)
    return files | done.changes_since(config)
