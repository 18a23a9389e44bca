"""Configuration from YAML and --set: what is accepted, and what a mistake is told."""

import re
from pathlib import Path

import pytest

from mispair.config.load import dump_config, load_config
from mispair.errors import InputError
from mispair.methods import method_preset

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_shipped_configuration_loads(path):
    config = load_config(path)
    assert config.train.epochs > config.method.warmup


@pytest.mark.parametrize("path", [p for p in CONFIGS if "-dual-" in p.stem], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_configurations_of_hub_encoders_say_that_they_were_never_run_and_what_others_published(path):
    text, config = path.read_text(), load_config(path)
    documented = (path.parents[2] / "docs" / "fine-tuning.md").read_text()
    assert "never run on this data" in text.split("\n")[0]
    figures = re.findall(r"\d{3}\.\d", text.partition("\ndata:")[0])
    assert figures
    assert all(figure in documented for figure in figures)
    tuned = path.stem.endswith("-full")
    assert (config.model.tune, config.data.live) == (("full", True) if tuned else ("head", False))
    assert config.data.encoder == (
        {"clip": "clip-b32", "siglip2": "siglip2-base"}[path.stem.split("-")[2]] if tuned else None
    )


def test_there_are_shipped_configurations():
    assert len(CONFIGS) >= 10


def test_dump_and_load_give_the_same_configuration(tmp_path):
    config = load_config(
        None, ["method.transport.mass=0.2", "data.noise.rate=0.4", "model.name=sgr", "train.decay_at=[3, 7]"]
    )
    (tmp_path / "config.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "config.yaml") == config


def test_another_method_starts_from_its_own_defaults():
    config = load_config(None, ["method.transport.mass=0.2", "method.name=plain", "method.loss=infonce"])
    assert config.method.name == "plain"
    assert config.method.loss == "infonce"


def test_configurations_are_frozen():
    config = load_config()
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3


def test_published_variants_differ_from_the_default_and_from_each_other():
    variants = [method_preset(name) for name in ("l2rm", "l2rm-paper", "l2rm-official")]
    assert len({str(v) for v in variants}) == 3


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["method.masss=0.1"], r"there is no method.masss; did you mean method.transport.mass\?"),
        (["trian.epochs=3"], r"there is no trian; did you mean train\?"),
        (["patience=3"], r"there is no patience; did you mean train.patience\?"),
        (["method.zzz=3"], "there is no method.zzz; known are candidates, cost, divergence, margin, matched_loss"),
        (["train.epoch=3"], r"there is no train.epoch; did you mean train.epochs\?"),
        (["data.noise.rat=0.3"], r"there is no data.noise.rat; did you mean data.noise.rate\?"),
        (["method.transport.mass=0"], "method.transport.mass: input should be greater than 0, got 0"),
        (["method.transport.mass=1.5"], "method.transport.mass: input should be less than or equal to 1, got 1.5"),
        (
            ["method.cost.kind=magic"],
            "method.cost.kind: input should be 'learned', 'paper', 'score' or 'cosine', got",
        ),
        (["method.mixture=beta"], "method.mixture is now method.split.mixture"),
        (["method.cost=paper"], "method.cost is now method.cost.kind"),
        (["method.one_group=none"], "method.one_group is now method.split.when_unimodal"),
        (["method.split.mixtur=beta"], r"there is no method.split.mixtur; did you mean method.split.mixture\?"),
        (["method.name=l3rm"], r"there is no method 'l3rm'; did you mean l2rm\? Known are plain, l2rm"),
        (["model.name=resnet"], "there is no model 'resnet'; known are sgr, saf"),
        (["train.epochs=many"], "train.epochs: expected a whole number, got 'many'"),
        (["train.epochs=3", "method.warmup_epochs=3"], "warmup_epochs=3 leaves nothing of train.epochs=3"),
        (["train.epochs"], "--set takes section.name=value, got 'train.epochs'"),
        (["=3"], "--set takes section.name=value"),
        (["train.epochs={"], "is not valid YAML; quote text"),
    ],
)
def test_a_mistake_gets_one_sentence(sets, message):
    with pytest.raises(ValueError, match=message):
        load_config(None, sets)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"train: [", "line 1 is not valid YAML"),
        (b"- a\n- b\n", "must hold sections like 'train:' and 'method:', got a list"),
        (b"\xff\xfe\x00", "line 1: bytes that are not UTF-8; expected a configuration in YAML in UTF-8"),
        (b"method: !!python/object/apply:os.system ['true']", "is not valid YAML"),
    ],
)
def test_a_broken_file_gets_one_sentence(tmp_path, content, message):
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_config(path)


def test_a_missing_file_gets_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"none\.yaml does not exist; expected a configuration"):
        load_config(tmp_path / "none.yaml")


def flat(section):
    """{"a": 1, "b": {"c": 2}} -> {"a": 1, "b.c": 2}."""
    values = {}
    for key, value in section.items():
        inner = {f"{key}.{name}": v for name, v in value.items()} if isinstance(value, dict) else {key: value}
        values |= inner
    return values


@pytest.mark.parametrize("path", [p for p in CONFIGS if p.parent.name == "ablations"], ids=lambda p: p.stem)
def test_an_ablation_differs_from_its_parent_in_one_value(path):
    parent = load_config(path.parents[1] / "demo" / "l2rm-vse.yaml").model_dump()
    ablated = load_config(path).model_dump()
    before, after = flat(parent["method"]), flat(ablated["method"])
    changed = {key for key in before if before[key] != after[key]}
    assert len(changed) == 1
    assert {**parent, "method": None} == {**ablated, "method": None}


@pytest.mark.parametrize("data_set", ["f30k", "coco"])
def test_published_presets_are_what_the_files_say(data_set):
    for name in ("l2rm-paper", "l2rm-official"):
        written = load_config(CONFIGS[0].parents[1] / data_set / f"{name}-sgr.yaml").method
        preset = method_preset(name)
        same = {"warmup_epochs": True, "transport": {"entropy"}}  # these belong to the data set
        assert written.model_dump(exclude=same) == preset.model_dump(exclude=same)


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("seed=99999999999999999999999", "too large a number"),
        ("seed=-1", "greater than or equal to 0"),
        ("train.lr=.inf", "finite number"),
        ("train.lr=.nan", "finite number"),
        ("train.epochs=2024-05-06", "expected a whole number"),
        ("train.epochs=" + "9" * 5000, "too long"),
        ("train.epochs=" + "[" * 4000, "nested"),
        ("train.epochs=" + "x" * 4000, "got 'xxx"),
        ("x" * 4000 + "=1", "there is no xxx"),
        ("a." * 4000 + "b=1", "there is no a"),
        ("data.sides={a: 1}", "data.sides"),
        ("1=2", "there is no 1"),
        ("model=3", "model"),
        ("method=[l2rm]", "method"),
        ("method.name=2024-05-06", "no method '2024-05-06'"),
    ],
)
def test_odd_values_get_one_short_sentence(assignment, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        load_config(None, [assignment])
    assert len(str(error.value)) < 400


def test_a_path_in_the_home_folder_is_written_as_in_a_shell(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    path = tmp_path / "home.yaml"
    path.write_text("data: {path: ~/pairs.csv, images: ~/photos, features: here/~/x.npy}\n")
    data = load_config(path).data
    assert (data.path, data.images) == ("/home/somebody/pairs.csv", "/home/somebody/photos")
    assert data.features == "here/~/x.npy"
