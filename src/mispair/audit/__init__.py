"""Which pairs are wrong, what kind of wrong, and what they should have been."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """`mispair.audit(run)` is what users call and `mispair.audit.verdicts` a module of it: one name, both uses."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return import_module("mispair.config.audit").audit(*args, **options)


sys.modules[__name__].__class__ = _Package
