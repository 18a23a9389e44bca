"""Classes of other packages: registered by hand or by entry point, validated like ours, one sentence when broken."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from mispair import registry
from mispair.cli.app import app
from mispair.config.load import dump_config, load_config
from mispair.errors import InputError
from mispair.methods import METHODS, About, MethodBase, MethodConfig, method_preset, method_presets
from mispair.models import MODELS, ModelConfig
from mispair.models.vse import VSE, VSEConfig

ABOUT = About("mine", "Mine", "none", 2026, "https://example.org", 1, 1.0, "is met with a shrug")


class MineConfig(MethodConfig):
    name: Literal["mine"] = "mine"
    strength: float = Field(default=1.0, gt=0)


class Mine(MethodBase[MineConfig]):
    Config = MineConfig
    about = ABOUT
    presets = {"mine-strong": lambda: MineConfig(strength=9.0)}  # noqa: RUF012

    def epoch(self, epoch, run):
        run.sweep(self._step, batch=None)

    def _step(self, run, batch):
        scores = self.net.link(self.net.similarity(*run.encode(self.net, batch)))
        loss = self.config.strength * -scores.diagonal().mean()
        run.log(loss=loss)
        run.minimize("net", loss)


class WideConfig(VSEConfig):
    name: Literal["wide"] = "wide"


class Wide(VSE):
    Config = WideConfig
    presets = {}  # noqa: RUF012


@pytest.fixture
def plugged(monkeypatch):
    """Three packages: one that works, one that cannot be imported, one whose class is no method."""
    module = ModuleType("mine_package")
    module.Mine, module.Wide, module.text = Mine, Wide, "no class"
    monkeypatch.setitem(sys.modules, "mine_package", module)
    points = {
        "mispair.methods": [
            EntryPoint("mine", "mine_package:Mine", "mispair.methods"),
            EntryPoint("lost", "no_such_package:Lost", "mispair.methods"),
            EntryPoint("text", "mine_package:text", "mispair.methods"),
        ],
        "mispair.models": [EntryPoint("wide", "mine_package:Wide", "mispair.models")],
    }
    monkeypatch.setattr(registry, "entry_points", lambda group: points[group])
    for owner in (METHODS, MODELS):
        monkeypatch.setattr(owner, "_classes", dict(owner._classes))


def test_a_method_of_another_package_is_configured_like_ours(plugged, tmp_path):
    config = load_config(None, ["method.name=mine", "method.strength=2.5"])
    assert config.method == MineConfig(strength=2.5)
    (tmp_path / "config.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "config.yaml") == config
    with pytest.raises(InputError, match=r"there is no method.strenght; did you mean method.strength\?"):
        load_config(None, ["method.name=mine", "method.strenght=2"])
    with pytest.raises(InputError, match="method.strength: input should be greater than 0, got -1"):
        load_config(None, ["method.name=mine", "method.strength=-1"])
    assert method_preset("mine-strong").strength == 9.0
    assert list(method_presets())[-2:] == ["mine", "mine-strong"]


def test_it_trains_and_is_listed(plugged, tmp_path):
    tiny = ("data.scenes.pictures=60", "train.batch_size=16", "train.epochs=1", "model.embed=16")
    arguments = ["train", "scenes", "--method", "mine", "--model", "wide", *(f"--set={value}" for value in tiny)]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["methods", "--json"])
    assert result.exit_code == 0
    assert '"is met with a shrug"' in result.output


def test_a_broken_package_gets_one_sentence_and_spoils_nothing(plugged):
    with pytest.raises(InputError, match=r"the method 'lost' comes from no_such_package:Lost, which cannot be"):
        load_config(None, ["method.name=lost"])
    with pytest.raises(InputError, match="'no class' cannot be a method"):
        METHODS.find("text")
    classes, problems = METHODS.everybody()
    assert {"plain", "l2rm", "mine"} <= set(classes)
    assert len(problems) == 2
    assert not any("\n" in problem for problem in problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Config": None}, "must carry its configuration as Config"),
        ({"Config": ModelConfig}, "must carry its configuration as Config"),
        ({"Config": MethodConfig}, "must name the method"),
        ({"about": None}, "must carry about"),
        ({"Config": METHODS.find("plain").Config}, "there is a method 'plain' already"),
    ],
)
def test_a_class_that_does_not_keep_the_contract_is_refused(plugged, change, message):
    with pytest.raises(InputError, match=message):
        METHODS.register(type("Broken", (Mine,), change))


def test_registering_twice_is_once(plugged):
    assert METHODS.register(Mine) is METHODS.register(Mine)
    assert METHODS.find("mine") is Mine


def test_built_in_names_ask_nobody(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: pytest.fail("asked other packages"))
    assert METHODS.find("l2rm").about.name == "l2rm"
    assert load_config(None, ["method.name=plain"]).method.name == "plain"
    assert method_preset("l2rm-paper").name == "l2rm"


def test_a_section_without_a_name_is_told_the_names():
    with pytest.raises(InputError, match="a method needs a name; known are plain, l2rm"):
        METHODS.parse({"name": 3})
