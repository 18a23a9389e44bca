"""Configuration from YAML and --set: what is accepted, and what a mistake is told."""

from pathlib import Path

import pytest

from mispair.config.load import dump_config, load_config
from mispair.methods import PRESETS

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_shipped_configuration_loads(path):
    config = load_config(path)
    assert config.train.epochs > getattr(config.method, "warmup_epochs", 0)


def test_there_are_shipped_configurations():
    assert len(CONFIGS) >= 10


def test_dump_and_load_give_the_same_configuration(tmp_path):
    config = load_config(None, ["method.mass=0.2", "data.noise.rate=0.4", "model.name=sgr", "train.decay_at=[3, 7]"])
    (tmp_path / "config.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "config.yaml") == config


def test_another_method_starts_from_its_own_defaults():
    config = load_config(None, ["method.mass=0.2", "method.name=plain", "method.loss=infonce"])
    assert config.method.name == "plain"
    assert config.method.loss == "infonce"


def test_configurations_are_frozen():
    config = load_config()
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3


def test_published_variants_differ_from_the_default_and_from_each_other():
    variants = [PRESETS[name]() for name in ("l2rm", "l2rm-paper", "l2rm-official")]
    assert len({str(v) for v in variants}) == 3


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["method.masss=0.1"], r"there is no method.masss; did you mean method.mass\?"),
        (["trian.epochs=3"], r"there is no trian; did you mean train\?"),
        (["train.epoch=3"], r"there is no train.epoch; did you mean train.epochs\?"),
        (["data.noise.rat=0.3"], r"there is no data.noise.rat; did you mean data.noise.rate\?"),
        (["method.mass=0"], "method.mass: input should be greater than 0, got 0"),
        (["method.mass=1.5"], "method.mass: input should be less than or equal to 1, got 1.5"),
        (["method.cost=magic"], "method.cost: input should be 'learned', 'paper', 'score' or 'cosine', got 'magic'"),
        (["method.name=l3rm"], "method.name=l3rm is unknown; known are 'plain', 'l2rm'"),
        (["model.name=resnet"], "model.name=resnet is unknown"),
        (["train.epochs=many"], "train.epochs: input should be a valid integer.*got 'many'"),
        (["train.epochs=3", "method.warmup_epochs=3"], "warmup_epochs=3 leaves nothing of train.epochs=3"),
        (["train.epochs"], "--set takes section.name=value, got 'train.epochs'"),
        (["=3"], "--set takes section.name=value"),
        (["train.epochs={"], "is not a value"),
    ],
)
def test_a_mistake_gets_one_sentence(sets, message):
    with pytest.raises(ValueError, match=message):
        load_config(None, sets)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"train: [", "line 1 is not valid YAML"),
        (b"- a\n- b\n", "must hold sections like 'train:' and 'method:', got list"),
        (b"\xff\xfe\x00", "cannot be read as a configuration"),
        (b"method: !!python/object/apply:os.system ['true']", "is not valid YAML"),
    ],
)
def test_a_broken_file_gets_one_sentence(tmp_path, content, message):
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_config(path)


def test_a_missing_file_gets_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="there is no configuration file"):
        load_config(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", [p for p in CONFIGS if p.parent.name == "ablations"], ids=lambda p: p.stem)
def test_an_ablation_differs_from_its_parent_in_one_value(path):
    parent = load_config(path.parents[1] / "demo" / "l2rm-vse.yaml").model_dump()
    ablated = load_config(path).model_dump()
    changed = {key for key in parent["method"] if parent["method"][key] != ablated["method"][key]}
    assert len(changed) == 1
    assert {**parent, "method": None} == {**ablated, "method": None}


@pytest.mark.parametrize("data_set", ["f30k", "coco"])
def test_published_presets_are_what_the_files_say(data_set):
    for name in ("l2rm-paper", "l2rm-official"):
        written = load_config(CONFIGS[0].parents[1] / data_set / f"{name}-sgr.yaml").method
        preset = PRESETS[name]()
        same = {"warmup_epochs", "entropy"}  # these belong to the data set
        assert written.model_dump(exclude=same) == preset.model_dump(exclude=same)
