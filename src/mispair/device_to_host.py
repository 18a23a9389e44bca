"""The one place where the host waits for an accelerator: values that arithmetic on the host goes on with.

A step must come without: everything it decides stays on the device. Surveys, means of an epoch, and what is saved are
read here, so that a search for this name finds every wait there is.
"""

from __future__ import annotations

from torch import Tensor


def to_host(values: Tensor) -> Tensor:
    """The values in the host's memory, without their graph."""
    return values.detach().cpu()
