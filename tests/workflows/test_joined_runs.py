"""SGR and SAF searched together: SGRAF ranks by the mean of both."""

import json

import numpy as np
import pytest

import mispair as mp
from mispair.data import DataConfig, ScenesConfig
from mispair.errors import InputError
from mispair.searching.index import Index
from mispair.searching.query import search_pair, search_text
from mispair.workflows.joined_runs import join_runs
from mispair.workflows.search import encoder_of
from tests.workflows.search_samples import NARROW, train


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    runs = [train(folder / name, name) for name in ("sgr", "saf")]
    mp.index([run.folder for run in runs], folder / "index")
    return runs, Index.open(folder / "index")


def test_the_mean_of_both_scores_ranks(both):
    runs, index = both
    text = "a red circle"
    found = search_text(index, encoder_of(index), text, k=4).hits
    means = []
    for hit in found:
        part = runs[0].open_split(hit.split)
        image = part.images.subset(np.array([list(part.table.image_ids).index(hit.image_path)]))
        means.append(np.mean([float(run.score(image, [text])[0, 0]) for run in runs]))
    assert [hit.score for hit in found] == pytest.approx(means, abs=1e-5)
    assert means == sorted(means, reverse=True)
    captions = search_pair(index, 7, 4, "images", "texts", encoder=encoder_of(index)).hits
    part = runs[0].open_split("train")
    image = part.images.subset(part.table.image_rows[[7]])
    each = [run.score(image, [hit.caption for hit in captions])[0] for run in runs]
    assert [hit.score for hit in captions] == pytest.approx(np.mean(each, 0).tolist(), abs=1e-5)


def test_a_first_stage_by_both(both):
    """Products of the vectors in the index are the means of the runs' own."""
    runs, index = both
    part = runs[0].open_split("train")
    sides = [
        (run.encode_images(part.images.subset(part.table.image_rows[:5])), run.encode_texts(part.table.captions[:5]))
        for run in runs
    ]
    mean = np.mean([images.vectors @ texts.vectors.T for images, texts in sides], 0)
    stored = index.vectors["images"][:5].astype(np.float32) @ index.vectors["texts"][:5].astype(np.float32).T
    np.testing.assert_allclose(stored, mean, atol=5e-3)


def test_from_the_command_line_and_refused_when_either_run_changed(both, tmp_path, mispair):
    runs, _ = both
    folders = [run.folder for run in runs]
    assert mispair("index", *folders, "-o", tmp_path / "index")[0] == 0
    code, said = mispair("search", tmp_path / "index", "a red circle", "--json", "-k", 2)
    assert code == 0
    assert len(json.loads(said.out)["answers"]) == 2
    code, said = mispair("index", *folders, "-o", tmp_path / "index")
    assert "0 images and texts encoded" in said.out
    other = train(tmp_path / "other", "saf", seed=5).folder
    manifest = json.loads((tmp_path / "index/manifest.json").read_text())
    (tmp_path / "index/manifest.json").write_text(json.dumps({**manifest, "joined": [str(other)]}))
    code, said = mispair("search", tmp_path / "index", "a red circle")
    assert code == 2
    assert f"was made with another model than {folders[0]} and {other} hold now" in said.err
    assert f"mispair index {folders[0]} {other} -o" in said.err
    (tmp_path / "index/manifest.json").write_text(json.dumps({**manifest, "joined": [str(tmp_path / "gone")]}))
    code, said = mispair("search", tmp_path / "index", "a red circle")
    assert (code, said.err.count("\n")) == (2, 1)
    assert f"the run {tmp_path / 'gone'} behind" in said.err
    assert mispair("index", *folders, "--encoder", "basic", "-o", tmp_path / "no")[0] == 2


def test_runs_that_read_something_else_are_no_ensemble(both, tmp_path):
    runs, _ = both
    data = DataConfig(path="scenes", scenes=ScenesConfig(pictures=50))
    how = {"model": "saf", "epochs": 1, "batch_size": 32, "quiet": True, "options": NARROW}
    small = mp.train(data, method="plain", out=tmp_path / "small", **how)
    with pytest.raises(InputError, match=r"cannot be searched together: data.scenes is .*train both on the same data"):
        join_runs([runs[0], small])
    two = mp.train(runs[0].config.data, method="ncr", out=tmp_path / "two", **how)
    with pytest.raises(InputError, match="the number of networks is 1 in the one and 2 in the other"):
        join_runs([runs[0], two])
    with pytest.raises(InputError, match="at least one run"):
        join_runs([])
    assert join_runs(runs[:1]) is runs[0]
