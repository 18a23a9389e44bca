"""Methods: one file or package per paper, and the registry that finds them by name."""

from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, scores_of
from mispair.methods.registry import (
    METHODS,
    about_method,
    build_method,
    method_names,
    method_preset,
    method_presets,
    register_method,
)

__all__ = [
    "METHODS",
    "About",
    "MethodBase",
    "MethodConfig",
    "about_method",
    "build_method",
    "method_names",
    "method_preset",
    "method_presets",
    "register_method",
    "scores_of",
]
