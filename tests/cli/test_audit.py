"""`mispair audit`: a run, other data, data alone and bare embeddings; what cannot be judged costs one sentence."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import mispair as library
from mispair.auditing.verdicts import Verdicts
from mispair.data import open_split
from mispair.errors import InputError
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.auditing.planted import planted
from tests.data.samples import Ran, precomp, run, write_lines
from tests.synthetic import tiny_config

Run = Callable[..., Ran]


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("runs") / "tiny"
    config = tiny_config("data.noise={rate: 0.4}", "train.epochs=8", "train.lr=0.01", "data.scenes.pictures=160")
    train(config, folder)
    return folder


def test_a_run_judges_what_it_learned_from(trained: Path, tmp_path: Path, mispair: Run) -> None:
    out = tmp_path / "audit"
    ran = mispair("audit", trained, "-o", out, "--truth", "--csv", "--budget", 7, "--folds", 0)
    assert ran.code == 0, ran
    assert "At least" in ran.out
    assert "learned from these very pairs" in ran.out
    assert "Against the truth" in ran.out
    found = Verdicts.load(out)
    assert found.facts.truth is not None
    assert found.facts.truth["auroc"] > 0.6
    assert "own scores" in found.facts.held_out
    assert found.facts.learned
    assert found.facts.rate_high == 1.0
    assert found.facts.run == str(trained)
    assert len(found) == len(load_run(trained).open_split("train"))
    with (out / "audit.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == len(found) + 1
    with (out / "look.csv").open(encoding="utf-8", newline="") as file:
        assert [row["look"] for row in csv.DictReader(file)] == [str(k) for k in range(1, 8)]
    again = mispair("audit", trained, "-o", out)
    assert again.code == 2
    assert "already holds an audit" in again.err


def test_a_short_run_is_cross_fitted(trained: Path, tmp_path: Path, mispair: Run) -> None:
    ran = mispair("audit", trained, "-o", tmp_path / "audit", "--json")
    assert ran.code == 0, ran
    facts = json.loads(ran.out)
    assert facts["held_out"].startswith("cross-fitting in 2 folds")
    assert facts["rate_low"] <= facts["rate"] <= facts["rate_high"]
    assert facts["data"]["format"] == "scenes"


def test_cross_fitted_networks_have_not_seen_what_they_judge(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mispair.workflows import crossfit

    seen, judged = [], []
    train, space_of = crossfit.train, crossfit.space_of

    def watched(config, folder, *, data, **more):  # type: ignore[no-untyped-def]
        seen.append(set(data.table.image_rows.tolist()))
        return train(config, folder, data=data, **more)

    def asked(models, data, **rows):  # type: ignore[no-untyped-def]
        judged.append(set(rows["image_rows"].tolist()))
        return space_of(models, data, **rows)

    monkeypatch.setattr(crossfit, "train", watched)
    monkeypatch.setattr(crossfit, "space_of", asked)
    found = library.audit(trained, folds=2)
    assert len(seen) == len(judged) == 2
    assert all(not trained_on & held for trained_on, held in zip(seen, judged, strict=True))
    everybody = set(load_run(trained).open_split("train").table.image_rows.tolist())
    assert judged[0] | judged[1] == everybody
    assert np.isfinite(found.p_mismatch).all()


def test_of_several_processes_the_first_judges(
    trained: Path, tmp_path: Path, mispair: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    ran = mispair("audit", trained, "--folds", 0, "-o", tmp_path / "audit")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert not (tmp_path / "audit").exists()


def test_from_python(trained: Path) -> None:
    loaded = load_run(trained)
    test = loaded.open_split("test")
    found = library.audit(loaded.models, test)
    assert len(found) == len(test)
    assert library.audit(loaded.models[0], test).table.equals(found.table)
    assert library.audit(trained, test).table.equals(found.table)
    with pytest.raises(InputError, match="give the pairs too"):
        library.audit(loaded.models)
    with pytest.raises(InputError, match="nobody injected"):
        library.audit(loaded.models, test, truth=True)


def test_other_data_and_a_column_of_the_truth(trained: Path, tmp_path: Path, mispair: Run) -> None:
    data = open_split(load_run(trained).config.data, "test")
    assert data.table.captions is not None
    np.save(tmp_path / "pairs.npy", np.concatenate(list(data.images.blocks(512))))
    write_lines(tmp_path / "pairs_ids.txt", [f"im{k}" for k in range(len(data.images))])
    wrong = np.arange(len(data)) % 3 == 0
    rows = [
        {"image_id": f"im{(image + w) % len(data.images)}", "caption": text, "bad": "yes" if w else "no"}
        for image, text, w in zip(data.table.image_rows.tolist(), data.table.captions, wrong.tolist(), strict=True)
    ]
    table = write_lines(tmp_path / "pairs.jsonl", [json.dumps(row) for row in rows])
    ran = mispair("audit", trained, "--data", table, "-o", tmp_path / "audit", "--truth-column", "bad", "--json")
    assert ran.code == 0, ran
    facts = json.loads(ran.out)
    assert facts["truth"]["rate"] == pytest.approx(wrong.mean())
    assert facts["held_out"] == "the model has not seen these pairs"
    assert facts["data"]["format"] == "jsonl"
    bad = mispair("audit", trained, "--data", table, "-o", tmp_path / "b", "--truth-column", "caption")
    assert bad.code == 2
    assert "line 1" in bad.err
    assert (
        "no column 'nope'"
        in mispair("audit", trained, "--data", table, "-o", tmp_path / "b", "--truth-column", "nope").err
    )
    assert "leave --folds out" in mispair("audit", trained, "--data", table, "-o", tmp_path / "b", "--folds", 2).err


def test_data_alone_is_trained_on_first(tmp_path: Path, mispair: Run) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(8, size=300)
    np.save(
        tmp_path / "pairs.npy", np.eye(8, dtype=np.float32)[kinds] + 0.1 * rng.normal(size=(300, 8)).astype(np.float32)
    )
    rows = [f"im{k},a thing called word{kind} here" for k, kind in enumerate(kinds)]
    table = write_lines(tmp_path / "pairs.csv", ["image_id,caption", *rows])
    ran = mispair("audit", table, "--train", "-o", tmp_path / "audit", "--folds", 0)
    assert ran.code == 0, ran
    assert (tmp_path / "audit" / "run" / "model.safetensors").exists()
    assert len(Verdicts.load(tmp_path / "audit")) == 300, "every row of the table is judged, not only a train part"
    # The same pairs with one column more, and with one caption mended since: the run has learned from them anyway.
    more = ["image_id,caption,n", *(f"{row},{k}" for k, row in enumerate(rows))]
    mended = ["image_id,caption", *rows[:-1], "im299,another"]
    other = ["image_id,caption", *(f"{row} there" for row in rows)]
    for name, lines, learned in (("more", more, True), ("mended", mended, True), ("other", other, False)):
        data = write_lines(tmp_path / f"{name}.csv", lines)
        told = ("--features", tmp_path / "pairs.npy", "--folds", 0, "--json")
        ran = mispair("audit", tmp_path / "audit" / "run", "--data", data, *told, "-o", tmp_path / name)
        assert ran.code == 0, ran
        assert json.loads(ran.out)["learned"] is learned


def test_embeddings(tmp_path: Path, mispair: Run) -> None:
    a, b, *_ = planted(pairs=211)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    ran = mispair("audit", "--embeddings", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "audit", "--json")
    assert ran.code == 0, ran
    assert json.loads(ran.out)["data"]["format"] == "arrays"
    assert np.allclose(Verdicts.load(tmp_path / "audit").p_mismatch, library.quick_audit(a, b).p_mismatch)
    assert mispair("fix", tmp_path / "audit", "--action", "drop", "-o", tmp_path / "fixed").code == 0
    assert len(np.load(tmp_path / "fixed" / "a.npy")) == 211 - json.loads(ran.out)["issues"]


def test_embeddings_of_a_table(tmp_path: Path, mispair: Run) -> None:
    """Ids, captions and pictures come from the table; what is mended is the table."""
    a, b, *_ = planted(pairs=211)
    np.save(tmp_path / "i.npy", a)
    np.save(tmp_path / "t.npy", b)
    lines = [f"images/{k}.png,words {k},{k}" for k in range(211)]
    table = write_lines(tmp_path / "pairs.csv", ["file_name,caption,more", *lines])
    arrays = ("--embeddings", tmp_path / "i.npy", tmp_path / "t.npy")
    ran = mispair("audit", *arrays, "--data", table, "-o", tmp_path / "audit", "--json")
    assert ran.code == 0, ran
    found = Verdicts.load(tmp_path / "audit")
    assert np.allclose(found.p_mismatch, library.quick_audit(a, b).p_mismatch)
    assert (found[7].image_id, found[7].caption) == ("images/7.png", "words 7")
    assert found.facts.data["path"] == str(table)
    fixed = mispair("fix", tmp_path / "audit", "--action", "drop", "-o", tmp_path / "clean")
    assert fixed.code == 0
    assert f"Train on it: mispair train {tmp_path / 'clean' / 'pairs.csv'} --images PICTURES\n" in fixed.out
    kept = [line for line, bad in zip(lines, found.is_mismatch_issue, strict=True) if not bad]
    assert (tmp_path / "clean" / "pairs.csv").read_text().splitlines()[1:] == kept
    short = write_lines(tmp_path / "short.csv", ["file_name,caption", "a,b"])
    ran = mispair("audit", *arrays, "--data", short, "-o", tmp_path / "no")
    assert ran.code == 2
    assert "211 rows; expected 1" in ran.err
    ran = mispair("audit", *arrays, "--data", table, "--features", "x.npy", "-o", tmp_path / "no")
    assert "leave --features out" in ran.err


def test_what_cannot_be_judged_costs_one_sentence(trained: Path, tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data")
    np.save(tmp_path / "a.npy", np.ones((30, 4), np.float32))
    np.save(tmp_path / "b.npy", np.ones((31, 4), np.float32))
    lost = write_lines(tmp_path / "lost.csv", ["filepath,title", "a.png,a dog", "b.png,a cat"])
    out = ("-o", tmp_path / "audit")
    refused = {
        (): "say what to audit",
        (folder,): "--train",
        (tmp_path / "a.npy",): "a.npy --train",
        ("--embeddings", tmp_path / "a.npy", tmp_path / "b.npy", "--ids", "x"): "name it with --data",
        (tmp_path / "no",): "does not exist",
        (lost,): "names no pictures that were found",
        (trained, "--data", folder): "features of width 4",
        (trained, "--folds", 99): "--folds must be between 2",
        (trained, "--budget", 0): "at least 1",
        (trained, "--features", "x.npy"): "name it with --data",
        (trained, "--embeddings", tmp_path / "a.npy", tmp_path / "b.npy"): "leave the run",
        ("--embeddings", tmp_path / "a.npy", tmp_path / "b.npy"): "31 rows",
        ("--embeddings", tmp_path / "a.npy", tmp_path / "c.npy"): "does not exist",
        (trained, "-o", tmp_path / "a.npy" / "x"): "cannot be made",
        (trained, "-o", tmp_path / ("x" * 300)): "File name too long",
    }
    for arguments, said in refused.items():
        ran = mispair("audit", *out, *arguments)
        assert ran.code == 2, ran
        assert said in ran.err
        assert ran.err.count("\n") == 1
        assert not (tmp_path / "audit").exists()


def test_data_without_a_run_is_told_how_to_be_judged(tmp_path: Path, mispair: Run) -> None:
    table = write_lines(tmp_path / "pairs.csv", ["image,caption", *(f"{k}.png,a dog {k}" for k in range(30))])
    for target in (table, "scenes"):
        ran = mispair("audit", target)
        assert ran.code == 2
        assert f"mispair audit {target} --train" in ran.err
    torch.save(torch.zeros(30, 4), tmp_path / "x.pt")
    ran = mispair("train", table, "--features", tmp_path / "x.pt", "-o", tmp_path / "run")
    assert ran.code == 2
    assert "numpy.save" in ran.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_is_constant_tells_nothing(side: int, tmp_path: Path, mispair: Run) -> None:
    sides = [*planted(pairs=101)[:2]]
    sides[side] = np.ones_like(sides[side])
    for name, vectors in zip("ab", sides, strict=True):
        np.save(tmp_path / f"{name}.npy", vectors)
    ran = mispair("audit", "--embeddings", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "audit")
    assert ran.code == 2
    assert "nothing tells the pairs apart" in ran.err
    assert not (tmp_path / "audit").exists()


def test_importing_the_library_costs_nothing() -> None:
    import subprocess
    import sys

    program = "import sys, mispair; mispair.audit; assert not {'torch', 'pyarrow', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_model_of_words_and_regions_scores_with_the_full_model(tmp_path: Path, mispair: Run) -> None:
    """Whatever the shortlist's vectors say, given and proposed pairs carry the score of the model itself."""
    small = ["data.scenes.pictures=60", "data.min_count=1", "train.batch_size=16", "model.embed=16", "model.sim=8"]
    sets = [part for value in small for part in ("--set", value)]
    ran = mispair(
        "train", "--model", "sgr", "--method", "plain", "--epochs", 1, "--noise", 0.4, *sets, "-o", tmp_path / "run"
    )
    assert ran.code == 0, ran
    assert mispair("audit", tmp_path / "run", "-o", tmp_path / "audit", "--folds", 0).code == 0
    found = Verdicts.load(tmp_path / "audit")
    loaded = load_run(tmp_path / "run")
    data, model = loaded.open_split("train"), loaded.models[0]
    pairs = data.batch(np.arange(len(data)))
    with torch.no_grad():
        images, texts = (
            model.encode_images(pairs.images, pairs.image_mask),
            model.encode_texts(pairs.texts, pairs.text_mask),
        )
        every = torch.arange(len(data))
        given = model.link(model.paired(images, texts, every, every)).numpy()
        assert np.allclose(found.table["score"].to_numpy(), given, atol=1e-5)
        partner = found.table["proposed_caption_pair"].to_pylist()
        proposed = [(k, int(p)) for k, p in enumerate(partner) if p is not None]
        assert proposed
        for k, other in proposed[:20]:
            score = model.link(model.paired(images, texts, torch.tensor([k]), torch.tensor([other])))
            assert found.table["proposed_caption_gain"][k].as_py() == pytest.approx(float(score) - given[k], abs=1e-5)
