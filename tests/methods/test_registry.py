"""What `--method` takes: every method and its variants by name; another name is refused with the nearest."""

from __future__ import annotations

import pytest

from mispair.errors import InputError
from mispair.methods.registry import method_preset, method_presets


def test_every_preset_is_found_by_its_name() -> None:
    presets = method_presets()
    assert any(make().name != name for name, make in presets.items()), "variants are among them"
    for name, make in presets.items():
        assert method_preset(name) == make()


def test_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="there is no method 'l2rn'"):
        method_preset("l2rn")
