"""Kinds of damage among many pairs: found as among few, and what was not looked for is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mispair.auditing.facts import EMPTY_CAPTIONS, REPEATED, SHIFTED, TWINS
from mispair.scale import judge_many as module
from mispair.scale.judge_many import AuditContext, judge_many
from tests.scale.many import vectors


@pytest.mark.parametrize("per_image", [1, 3])
def test_captions_off_by_rows_are_found_among_many(monkeypatch, per_image):
    monkeypatch.setattr(module, "_CHUNK", 100)
    data, _, _ = vectors(999, per_image=per_image, rate=0.0)
    assert judge_many(data, AuditContext({})).facts.damage == ()
    values = data.texts.store.take(np.arange(999))[0][:, 0]
    values[300:600] = np.roll(values[300:600], 3, axis=0)
    off = replace(data, texts=replace(data.texts, store=type(data.texts.store)(values)))
    found = judge_many(off, AuditContext({})).facts
    assert [damage.kind for damage in found.damage] == [SHIFTED]
    assert "3 rows further down" in found.damage[0].evidence


def test_what_was_not_looked_for_is_said():
    data, _, _ = vectors(300)
    assert judge_many(data, AuditContext({})).facts.not_sought == (REPEATED, EMPTY_CAPTIONS, TWINS)
    named = replace(data, captions=[f"caption {k}" for k in range(300)])
    assert judge_many(named, AuditContext({})).facts.not_sought == (TWINS,)
