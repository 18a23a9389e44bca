"""Files that are no .npy are called what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mispair.data.files.npy import read_header
from mispair.errors import InputError


def test_a_pytorch_file_is_called_one(tmp_path: Path) -> None:
    torch.save(torch.zeros(3, 4), tmp_path / "x.pt")
    with pytest.raises(InputError, match=r"x.pt.*PyTorch file.*tensor.numpy\(\)") as caught:
        read_header(tmp_path / "x.pt", "features")
    assert "npz" not in str(caught.value)


def test_an_npz_names_its_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros(3), texts=np.zeros(3))
    with pytest.raises(InputError, match=r"\.npz archive of 'images', 'texts'"):
        read_header(tmp_path / "x.npz", "features")
