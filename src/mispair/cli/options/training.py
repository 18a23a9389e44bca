"""Options that every verb that trains shares, and what they make of a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mispair.cli.options.grouping import OptionGroup, option

if TYPE_CHECKING:
    from rich.console import Console

    from mispair.config.schema import RunConfig

_PANEL = "Training"
_SIZES = "vse, dual, sgr, saf or imram; add :paper or :small for the size, small if not said."


@dataclass(frozen=True)
class TrainingOptions(OptionGroup):
    """What every verb that trains lets a person change; `said` are arguments of `mispair.config.choose.configure`."""

    method: str | None = option(None, panel=_PANEL, help="By name; mispair methods lists them, variants included.")
    model: str | None = option(None, panel=_PANEL, help=_SIZES)
    epochs: int | None = option(None, panel=_PANEL, help="Epochs, warm-up included.")
    batch_size: int | None = option(None, panel=_PANEL, help="Pairs of one step.")
    lr: float | None = option(None, panel=_PANEL, help="Learning rate.")
    device: str | None = option(None, panel=_PANEL, help="auto, cpu, cuda or mps.")
    seed: int | None = option(None, panel=_PANEL, help="Same seed, same result. The mismatches have data.noise.seed.")
    sets: list[str] = option([], "--set", panel=_PANEL, help="Change one value: --set train.epochs=10. Repeatable.")


def configure(console: Console, data: dict[str, Any], options: dict[str, Any], config: Path | None = None) -> RunConfig:
    """The configuration these options make; what nobody said is chosen, with the reason on the console."""
    from mispair.config.choose import configure as choose_configuration

    chosen, reasons = choose_configuration(data, config=config, **options)
    for section, reason in reasons.items():
        console.print(f"[bold]{section:<7}[/bold] {reason}", highlight=False, soft_wrap=True)
    return chosen
