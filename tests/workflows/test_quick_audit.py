"""Very many embeddings are judged in place, by the same calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mispair as mp
from mispair.errors import InputError
from mispair.scale import frame
from mispair.workflows import quick_audit as module
from mispair.workflows.quick_audit import quick_audit_files
from tests.auditing.planted import planted


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 500)
    monkeypatch.setattr(frame, "LANDMARKS", 256)


def landmarks_judged(verdicts):
    return "landmarks" in verdicts.facts.mixture["evidence"]


def test_many_arrays_tensors_and_files_are_judged_alike(tmp_path):
    a, b, wrong, _ = planted(900)
    found = mp.quick_audit(a, b, captions=[f"c{k}" for k in range(900)])
    assert landmarks_judged(found)
    assert abs(found.facts.rate - wrong.mean()) < 0.06
    assert found[3].caption == "c3"
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = quick_audit_files(tmp_path / "a.npy", tmp_path / "b.npy")
    assert np.array_equal(files.p_mismatch, found.p_mismatch)
    assert files.facts.data["path"] == str(tmp_path / "a.npy")
    tensors = mp.quick_audit(torch.from_numpy(a), torch.from_numpy(b))
    assert np.array_equal(tensors.p_mismatch, found.p_mismatch)
    assert not landmarks_judged(mp.quick_audit(a[:400], b[:400]))


def test_many_rows_of_half_precision_are_judged_like_those_of_full():
    """As an encoder on an accelerator leaves them, or a list of such."""
    a, b, _, _ = planted(900)
    first, second = (torch.from_numpy(side).bfloat16() for side in (a, b))
    expected = mp.quick_audit(first.float(), second.float()).p_mismatch
    assert np.array_equal(mp.quick_audit(first, second.requires_grad_()).p_mismatch, expected)
    assert np.array_equal(mp.quick_audit(list(first), list(second.detach())).p_mismatch, expected)
    with pytest.raises(InputError, match="text_embeddings is sparse; expected a dense tensor"):
        mp.quick_audit(first, second.detach().to_sparse())


def test_rows_with_one_id_are_one_image():
    a, b, _, _ = planted(600)
    a = np.repeat(a[::2], 2, axis=0)
    found = mp.quick_audit(
        "image", "text", image_ids="id", table=Columns(image=a, text=b, id=[k // 2 for k in range(600)])
    )
    assert landmarks_judged(found)
    assert found[5].image_id == "2"
    alone = mp.quick_audit(a, b)
    assert not np.array_equal(found.p_mismatch, alone.p_mismatch), "the image is no rival of its own"


class Columns(dict):
    @property
    def column_names(self):
        return list(self)


def test_what_does_not_fit_is_refused():
    a, b, _, _ = planted(600)
    with pytest.raises(InputError, match="there are 500 image embeddings and 600 text"):
        mp.quick_audit(a[:500], b)
    with pytest.raises(InputError, match="there are 3 captions for 600 pairs"):
        mp.quick_audit(a, b, captions=["x", "y", "z"])
    with pytest.raises(InputError, match="width 32 and text embeddings 16"):
        mp.quick_audit(a, b[:, :16])
    with pytest.raises(InputError, match="shape"):
        mp.quick_audit(a[:, 0], b)
