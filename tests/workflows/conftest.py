"""What many tests here begin with: a run and its index, tiny towers, photographs with an encoder of their own."""

import sys

import numpy as np
import pytest

from mispair.cli.app import main
from mispair.data import DataConfig
from mispair.encoders import registry
from mispair.encoders.own import FunctionEncoder
from mispair.searching.index import Index
from mispair.workflows.index_run import build_index
from tests.colours import colour_encoder, write_colours
from tests.workflows.search_samples import train


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="session")
def index(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "index"
    build_index(run, folder)
    return Index.open(folder)


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    """Tiny towers of each family, and pictures with captions: to read, not to write."""
    from tests.workflows.tower_runs import make_hub  # imports transformers

    return make_hub(tmp_path_factory.mktemp("hub"))


@pytest.fixture
def mispair(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mispair", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, capsys.readouterr()

    return call


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """24 pictures, half red and half blue, and an encoder of mean colours with one space for both sides."""
    from PIL import Image

    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "_REGISTERED", {})
    (tmp_path / "photos").mkdir()
    lines = ["filepath,title"]
    for k in range(24):
        picture = Image.new("RGB", (50, 40), (120, 120, 120))
        colour = (200 + k, 10, 10) if k % 2 else (10, 10, 200 + k)
        picture.paste(colour, (0, 0, 20, 16) if k < 6 else (30, 24, 50, 40))
        picture.save(tmp_path / f"photos/{k}.png")
        lines.append(f"{k}.png,{'red' if k % 2 else 'blue'} thing {k}")
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")

    def see(pixels):
        return pixels.astype(np.float32).mean((1, 2)) / 255

    def read(texts):
        words = ("red", "green", "blue")
        return np.array([[float(word in text) + 0.01 * len(text) for word in words] for text in texts], np.float32)

    registry.register_encoder(
        "colours", lambda device, cells: FunctionEncoder("colours", "1", images=see, texts=read, joint=True)
    )
    return tmp_path


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """The encoder `colours`, and a cache of the test's own."""
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def raw(tmp_path):
    """A table of pictures of one colour each."""
    return DataConfig(path=str(write_colours(tmp_path)), images=str(tmp_path / "photos"))
