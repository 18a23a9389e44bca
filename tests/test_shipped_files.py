"""Configurations by name, from wherever one stands."""

from pathlib import Path

import pytest

from mispair.config.load import load_config
from mispair.errors import InputError
from mispair.shipped_files import find_config, homes

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["f30k/l2rm-sgr", "f30k/l2rm-sgr.yaml"])
def test_a_name_is_found_away_from_the_checkout(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_config(Path(name)) == load_config(ROOT / "configs" / "f30k" / "l2rm-sgr.yaml")


def test_a_file_wins_over_a_name_and_ones_own_folder_over_what_came_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "configs" / "demo" / "l2rm-vse.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("seed: 7\n")
    assert find_config(Path("demo/l2rm-vse")).resolve() == own
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "l2rm-vse").write_text("seed: 8\n")
    assert load_config(Path("demo/l2rm-vse")).seed == 8


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("f30k/l2rm-sgrr", r"there is no configuration file f30k/l2rm-sgrr.*did you mean f30k/l2rm-sgr\?"),
        ("nothing-like-it", "there is no configuration file nothing-like-it, and none of that name"),
        ("x" * 300, "there is no configuration file xxx"),
        ("../configs/f30k/none", "../configs/f30k/none does not exist"),
        ("/nowhere/f30k/l2rm-sgr", "/nowhere/f30k/l2rm-sgr does not exist"),
    ],
)
def test_what_is_not_there_is_said(name, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        load_config(Path(name))


def test_the_installed_copy_is_looked_at_last():
    assert [home.name for home in homes("experiments")] == ["experiments"] * 3
    assert homes("experiments")[-1].parent.name == "shipped"
