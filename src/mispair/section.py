"""The base of every configuration section: frozen, typed, unknown keys refused."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration, defined next to the code that reads it."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
