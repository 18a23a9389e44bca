"""How long to train, in which batches, how fast."""

from __future__ import annotations

from pydantic import Field

from mispair.runtime.schedule import Rule
from mispair.section import Section


class TrainConfig(Section):
    """The section `train` of a run's configuration."""

    epochs: int = Field(default=20, ge=1)  # warm-up included
    batch_size: int = Field(default=128, ge=2)  # of all processes together
    lr: float = Field(default=2e-4, gt=0.0)
    schedule: Rule = "step"
    decay_at: tuple[int, ...] = ()  # epochs at which the rate is multiplied by decay_factor
    decay_factor: float = Field(default=0.1, gt=0.0, le=1.0)
    patience: int | None = Field(default=None, ge=1)  # stop after so many epochs without a better dev score
    average: float = Field(default=0.0, ge=0.0, lt=1.0)  # judge and keep the mean of about 1 / (1 - this) steps
    drop_regions: float = Field(default=0.0, ge=0.0, lt=1.0)  # share of an image's regions left out of each step
    drop_words: float = Field(default=0.0, ge=0.0, lt=1.0)  # share of a text's words left out of each step
    crop: float = Field(default=1.0, gt=0.0, le=1.0)  # least share of a picture that a step shows; 1: all of it
    save_minutes: float = Field(default=5.0, gt=0.0)  # at most so much work is lost when a run is killed
