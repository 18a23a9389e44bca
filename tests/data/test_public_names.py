"""What `mispair.data` promises can be had from it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mispair.data


def test_every_public_name_is_there() -> None:
    for name in mispair.data.__all__:
        assert getattr(mispair.data, name).__name__ == name
    assert set(mispair.data.__all__) == set(mispair.data._HOMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="open_spilt"):
        mispair.data.open_spilt  # noqa: B018


def test_readers_do_not_wait_for_torch() -> None:
    code = "import sys; from mispair.data import open_source, check_data; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
