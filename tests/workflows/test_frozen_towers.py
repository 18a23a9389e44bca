"""A run whose towers learned says how many pairs are mismatched by what the towers were before."""

import pytest

from mispair.data import open_split
from mispair.data.untrained import untrained_vectors
from mispair.functional.judged_by_others import judge_by_others
from mispair.workflows.embed import Encoding, with_features
from mispair.workflows.train import train
from tests.workflows.tower_runs import configured, make_hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return make_hub(tmp_path_factory.mktemp("hub"))


@pytest.mark.parametrize("encoder", ["clip", "dinov2+bert"])
def test_the_rate_is_that_of_the_encoders_vectors_whatever_the_towers_became(hub, tmp_path, encoder):
    name = "+".join(str(hub / part) for part in encoder.split("+"))
    config = configured(hub, "clip", f"data.encoder={name}", "data.noise.rate=0.4", "model.tune=full", "train.lr=0.01")
    said = train(config, tmp_path / "run").summary

    raw = config.data.model_copy(update={"live": False})
    vectors = open_split(with_features(raw, Encoding(name, texts=True)), "train")
    frozen = untrained_vectors(vectors)
    assert (frozen.joint is not None) == (encoder == "clip")
    estimate = judge_by_others(frozen.images, frozen.texts, vectors.table.image_rows, joint=frozen.joint).estimate
    assert said["mismatch_rate"] == pytest.approx(estimate.rate, abs=1e-4)
    assert said["mismatch_rate_ci"] == pytest.approx((estimate.low, estimate.high), abs=1e-4)
    assert said["noise"]["rate"] == pytest.approx(0.4, abs=0.1)
