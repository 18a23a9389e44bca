"""Pictures through the front door for Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import mispair as mp
from mispair.errors import InputError
from tests.colours import colour_encoder, write_colours


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))


def test_embed_then_train_with_an_encoder_of_ones_own(tmp_path: Path) -> None:
    table = write_colours(tmp_path)
    config = mp.embed(table, images=tmp_path / "photos", encoder=colour_encoder(), workers=0)
    assert config.encoder == "colours"
    run = mp.train(config, epochs=2, out=tmp_path / "run", quiet=True)
    assert run.config.data.features == config.features
    folder = mp.embed(config.model_copy(update={"features": None}), tmp_path / "f", encoder=colour_encoder(), workers=0)
    assert Path(folder.path) == tmp_path / "f"


def test_train_takes_pictures(tmp_path: Path) -> None:
    table = write_colours(tmp_path)
    run = mp.train(
        table, images=tmp_path / "photos", encoder=colour_encoder(), epochs=2, out=tmp_path / "run", quiet=True
    )
    assert run.config.data.features is not None
    with pytest.raises(InputError, match="brings its features"):
        mp.train(run.config.data, encoder=colour_encoder(), epochs=2, out=tmp_path / "again", quiet=True)


@pytest.mark.parametrize(
    ("said", "wrong"), [("method", "l2rmm"), ("model", "dualll"), ("model", "dual:tiny"), ("tune", "lorra")]
)
def test_names_that_mean_nothing_are_refused_before_anything_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, wrong: str
) -> None:
    monkeypatch.setattr("mispair.workflows.embed.encode_data", lambda *_, **__: pytest.fail("hours for nothing"))
    table = write_colours(tmp_path)
    given = {"images": tmp_path / "photos", "encoder": colour_encoder(), "out": tmp_path / "run"}
    with pytest.raises(InputError, match=f"'{wrong.rpartition(':')[2]}'"):
        mp.train(table, **given, **{said: wrong})
    with pytest.raises(InputError, match="--tune is for the model dual, and --model says vse"):
        mp.train(table, **given, model="vse", tune="head")


def test_towers_that_learn_are_named(tmp_path: Path) -> None:
    table = write_colours(tmp_path)
    with pytest.raises(InputError, match="tune='lora' trains the towers of an encoder of the hub: name it"):
        mp.train(table, images=tmp_path / "photos", encoder=colour_encoder(), tune="lora", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_audit_without_training(tmp_path: Path) -> None:
    table = write_colours(tmp_path)
    verdicts = mp.audit_pictures(table, images=tmp_path / "photos", encoder=colour_encoder(), workers=0)
    assert len({verdict.pair for verdict in verdicts.worst(8)} & set(range(8))) >= 6
    with pytest.raises(InputError, match="none.*does not exist"):
        mp.audit_pictures(table, images=tmp_path / "none", encoder=colour_encoder())
    with pytest.raises(InputError, match="scenes brings its features: train on it and judge it with the run"):
        mp.audit_pictures("scenes", encoder=colour_encoder())
