"""Shards from Python: the same audit, and the same features, as from one process."""

import pytest

import mispair as mp
from mispair.encoders import registry
from mispair.scale import frame
from tests.colours import colour_encoder, write_colours
from tests.scale.many import write_arrays


def test_two_rounds_of_shards_are_an_audit(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "LANDMARKS", 512)
    files, wrong, _ = write_arrays(tmp_path, 1500)
    merged = []
    for _ in range(2):
        for i in (1, 2, 3):
            mp.audit_shard(files, f"{i}/3", tmp_path / "s")
        merged.append(mp.merge_audit(tmp_path / "s"))
    assert "Judge every shard now" in merged[0]
    assert abs(merged[1].facts.rate - wrong.mean()) < 0.1
    assert merged[1].report(tmp_path / "page.html").exists()
    with pytest.raises(mp.InputError, match="a shard is i/n"):
        mp.audit_shard(files, "4/3", tmp_path / "s")
    with pytest.raises(mp.InputError, match="embed it first"):
        mp.audit_shard(tmp_path, "1/3", tmp_path / "other")


def test_parts_of_an_embedding_are_merged(tmp_path, monkeypatch):
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "_REGISTERED", {"colours": lambda device, cells: colour_encoder()})
    table = write_colours(tmp_path, 24, 2)
    said = {"images": tmp_path / "photos", "encoder": "colours", "workers": 0}
    for i in (1, 2):
        mp.embed(table, tmp_path / f"part-{i}", shard=f"{i}/2", **said)
    whole = mp.embed(table, tmp_path / "whole", **said)
    merged = mp.merge_embedded([tmp_path / "part-2", tmp_path / "part-1"], tmp_path / "merged")
    name = "features.npy"
    assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert merged.path == str(tmp_path / "merged")
    assert whole.path == str(tmp_path / "whole")
    with pytest.raises(mp.InputError, match="name it with out="):
        mp.embed(table, shard="1/2", **said)
