"""What is chosen when nobody says, for data of every size."""

from __future__ import annotations

import numpy as np
import pytest

from mispair.config import choose as module
from mispair.config.choose import choose, configure
from mispair.data import DataConfig
from mispair.errors import InputError
from tests.data.samples import features, precomp


@pytest.fixture
def seen(monkeypatch):
    """Pretend that the data has so many pairs and regions, and the machine a GPU or none."""

    def pretend(pairs, regions=1, gpu=False, alone=False):
        monkeypatch.setattr(module, "_measure", lambda config: (pairs, pairs if alone else pairs // 5, regions))
        monkeypatch.setattr(module.torch.cuda, "is_available", lambda: gpu)
        return DataConfig(path="scenes")

    return pretend


@pytest.mark.parametrize(("epochs", "decay"), [(1, 1), (2, 1), (10, 7), (20, 14), (40, 28)])
def test_the_rate_falls_after_seven_tenths(seen, epochs, decay):
    train = choose(seen(5000), epochs).values["train"]
    assert train["epochs"] == epochs
    assert train["decay_at"] == [decay]


@pytest.mark.parametrize(
    ("pairs", "epochs", "batch", "lr"),
    [
        (25, 20, 2, 1e-3),
        (400, 20, 32, 1e-3),
        (1279, 20, 64, 1e-3),
        (1280, 20, 128, 1e-3),
        (10_000, 13, 128, 1e-3),
        (19_999, 10, 128, 1e-3),
        (20_000, 10, 128, 5e-4),
        (150_000, 10, 128, 5e-4),
    ],
)
def test_budget_by_size_without_a_gpu(seen, pairs, epochs, batch, lr):
    values = choose(seen(pairs, regions=36)).values
    assert values["model"] == {"name": "vse", "embed": 512, "words": "bag"}
    assert (values["train"]["epochs"], values["train"]["batch_size"], values["train"]["lr"]) == (epochs, batch, lr)


@pytest.mark.parametrize(("pairs", "epochs"), [(30_000, 40), (100_000, 30), (145_000, 21), (500_000, 20)])
def test_regions_and_a_gpu_get_the_papers_backbone(seen, pairs, epochs):
    choice = choose(seen(pairs, regions=36, gpu=True))
    assert choice.values["model"] == {"name": "sgr"}
    assert choice.values["train"]["lr"] == 2e-4
    assert choice.values["train"]["epochs"] == epochs
    assert "36 regions per image and a GPU" in choice.reasons["model"]
    one = choose(seen(pairs, regions=1, gpu=True))
    assert one.values["model"]["name"] == "vse"
    assert "one vector per item" in one.reasons["model"]


@pytest.mark.parametrize(("epochs", "warmup"), [(2, 1), (4, 1), (10, 2), (14, 4), (20, 5), (40, 5)])
def test_a_quarter_is_warm_up_five_epochs_at_most(seen, epochs, warmup):
    choice = choose(seen(5000), epochs)
    assert choice.values["method"] == {"name": "l2rm", "warmup_epochs": warmup}
    assert f"after {warmup} epoch{'s' if warmup > 1 else ''}," in choice.reasons["method"]


@pytest.mark.parametrize(
    ("pairs", "epochs", "warmup", "patience"),
    [(1500, 87, 12, 26), (6000, 22, 3, 7), (13_000, 10, 2, 4), (150_000, 10, 2, 4)],
)
def test_with_one_text_per_image_the_budget_follows_steps(seen, pairs, epochs, warmup, patience):
    values = choose(seen(pairs, regions=36, alone=True)).values
    assert (values["train"]["epochs"], values["train"]["patience"]) == (epochs, patience)
    assert values["method"]["warmup_epochs"] == warmup
    assert values["train"] | {"average": 0.99, "drop_words": 0.2, "drop_regions": 0.5} == values["train"]
    assert "drop_regions" not in choose(seen(pairs, regions=1, alone=True)).values["train"]
    with_siblings = choose(seen(pairs, regions=36)).values["train"]
    assert set(with_siblings) == {"epochs", "batch_size", "lr", "decay_at"}


@pytest.mark.parametrize("pairs", [300, 700, 1500, 6000])
def test_patience_outlasts_the_warm_up(seen, pairs):
    values = choose(seen(pairs, regions=1, alone=True)).values
    assert values["train"]["patience"] > values["method"]["warmup_epochs"]


def test_epochs_that_were_asked_for_are_all_trained_and_half_of_them_after_the_warm_up(seen):
    values = choose(seen(1500, alone=True), 6).values
    assert values["train"]["epochs"] == 6
    assert "patience" not in values["train"]
    assert values["method"]["warmup_epochs"] == 3


@pytest.mark.parametrize(("regions", "expected"), [(3, 3), (0, 1)])
def test_pairs_and_regions_are_those_of_the_data(tmp_path, regions, expected):
    precomp(tmp_path, images=7, per_image=5)
    np.save(tmp_path / "train_ims.npy", features(7, regions=regions))
    assert module._measure(DataConfig(path=str(tmp_path))) == (35, 7, expected)


FROZEN = {"path": "p.csv", "features": "f.npy", "second": "t.npy", "encoder": "basic"}
LIVE = {"path": "p.csv", "images": "photos", "encoder": "clip-b32", "live": True}


def test_a_head_that_is_asked_for_is_the_one_that_is_chosen(seen):
    seen(200_000)
    chosen, _ = configure(FROZEN)
    assert (chosen.model.name, chosen.model.hidden, chosen.model.dropout, chosen.train.lr) == ("dual", 1024, 0.5, 3e-4)
    assert configure(FROZEN, tune="head")[0] == chosen


def test_towers_keep_what_was_said_of_their_model_and_of_their_rates(seen):
    seen(200_000)
    small, _ = configure(LIVE, tune="full")
    assert (small.model.tune, small.model.embed, small.model.hidden, small.train.lr) == ("full", 512, None, 1e-5)
    assert configure(LIVE, tune="full", model="dual:paper")[0].model.embed == 1024
    said, _ = configure(LIVE, tune="lora", model={"name": "dual", "locked": 3, "lora": {"rank": 2}}, lr=1e-3)
    assert (said.model.locked, said.model.lora.rank, said.train.lr) == (3, 2, 1e-3)
    again, _ = configure({}, base=said.model_dump(mode="json"), tune="lora")
    assert again == said, "nothing is chosen where a configuration is given"
    with pytest.raises(InputError, match="--tune is for the model dual, and --model says vse; leave one of them out"):
        configure(LIVE, tune="lora", model="vse")
