"""What a command was asked and what it answered."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.data.samples import Ran

Run = Callable[..., Ran]


def findings(ran: Ran) -> dict[str, dict[str, object]]:
    return {finding["kind"]: finding for finding in json.loads(ran.out)["findings"]}
