"""An extension of Griffe: a docstring's `Example:` is a section of examples, as `Examples:` is."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class ExampleSections(Extension):
    """Renames the section before docstrings are parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^( *)Example:$", r"\1Examples:", obj.docstring.value)
