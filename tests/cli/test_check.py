"""`mispair check`: the table, each finding, exit codes, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mispair.data.vocabulary import Vocabulary
from tests.cli.calls import Run, findings
from tests.data.picture_samples import picture, write_pictures
from tests.data.samples import captions, features, precomp, run, table, write_lines


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def test_a_clean_folder(tmp_path: Path, mispair: Run) -> None:
    ran = mispair("check", precomp(tmp_path, splits=("train", "dev")))
    assert ran.code == 0
    assert ran.err == ""
    for row in (
        "pairs",
        "35",
        "images",
        "captions per image",
        "words",
        "vocabulary",
        "regions",
        "dimension",
        "float32",
    ):
        assert row in ran.out
    assert "clean" in ran.out


def test_json_says_the_same(tmp_path: Path, mispair: Run) -> None:
    ran = mispair("check", precomp(tmp_path, splits=("train", "dev")), "--json")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert content["usable"] is content["clean"] is True
    split = content["splits"][0]
    assert (split["pairs"], split["images"], split["captions_per_image"]) == (35, 7, [5, 5])
    assert split["words"] == 35 * 10
    side = split["sides"][0]
    assert (side["regions"], side["width"], side["dtype"]) == (3, 4, "float32")
    values = features(7)
    assert side["low"] == pytest.approx(float(values.min()))
    assert side["high"] == pytest.approx(float(values.max()))


def test_the_generated_world_is_the_default_and_clean(mispair: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mispair.data import config

    small = config.ScenesConfig(pictures=40)
    monkeypatch.setattr("mispair.cli.options.data.data_config", lambda **_: config.DataConfig(scenes=small))
    ran = mispair("check")
    assert ran.code == 0, ran
    assert "scenes" in ran.out


def damaged(tmp_path: Path, change: Callable[[np.ndarray], None]) -> Path:
    array = features(7)
    change(array)
    np.save(precomp(tmp_path) / "train_ims.npy", array)
    return tmp_path


def test_nan_and_infinite_rows(tmp_path: Path, mispair: Run) -> None:
    def change(array: np.ndarray) -> None:
        array[2, 1, 1] = np.nan
        array[5, 0, 0] = -np.inf

    ran = mispair("check", damaged(tmp_path, change), "--json")
    assert ran.code == 1
    assert findings(ran)["NaN or infinite features"]["rows"] == [2, 5]
    assert json.loads(ran.out)["splits"][0]["sides"][0]["high"] < 10, "the range is that of the numbers"


def test_zero_and_duplicate_images(tmp_path: Path, mispair: Run) -> None:
    def change(array: np.ndarray) -> None:
        array[1] = 0.0
        array[6] = array[3]

    found = findings(mispair("check", damaged(tmp_path, change), "--json"))
    assert found["all-zero images"]["rows"] == [1]
    assert found["duplicate images"]["rows"] == [6]


def test_rows_of_a_folded_array_are_rows_of_the_file(tmp_path: Path, mispair: Run) -> None:
    array = features(7)
    array[4] = 0.0
    np.save(precomp(tmp_path) / "train_ims.npy", np.repeat(array, 5, 0))
    ran = mispair("check", tmp_path, "--json")
    assert findings(ran)["all-zero images"]["rows"] == [20]
    assert any("folded to 7 images" in note for note in json.loads(ran.out)["notes"])


def test_nothing_but_nan_is_still_json(tmp_path: Path, mispair: Run) -> None:
    ran = mispair("check", damaged(tmp_path, lambda array: array.fill(np.nan)), "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["splits"][0]["sides"][0]["low"] is None


def test_captions_to_look_at(tmp_path: Path, mispair: Run) -> None:
    lines = captions(35)
    lines[3] = ""
    lines[8] = lines[4].upper()
    lines[9] = "dog " * 201
    for k in range(10, 35, 5):
        lines[k] = "no description available"
    write_lines(precomp(tmp_path) / "train_caps.txt", lines)
    ran = mispair("check", tmp_path, "--json")
    found = findings(ran)
    assert ran.code == 1
    assert found["empty captions"]["rows"] == [4]
    assert found["over-long captions"]["rows"] == [10]
    assert found["duplicate captions"]["rows"] == [9, 16, 21, 26, 31]
    assert found["captions repeated over many images"]["rows"] == [11, 16, 21, 26, 31]


def test_too_few_pairs_to_learn_from_are_said(tmp_path: Path, mispair: Run) -> None:
    for rows in (19, 20):
        table_of = write_lines(tmp_path / "pairs.csv", ["image_id,caption", *(f"im{k},dog {k}" for k in range(rows))])
        said = mispair("check", table_of).out.replace("\n", " ")
        assert ("19 pairs to learn from: training and audits need at least 20" in said) == (rows == 19)


def test_one_caption_several_times_for_one_image_is_not_many_images(tmp_path: Path, mispair: Run) -> None:
    lines = captions(35)
    lines[:5] = ["the same"] * 5
    write_lines(precomp(tmp_path) / "train_caps.txt", lines)
    found = findings(mispair("check", tmp_path, "--json"))
    assert set(found) == {"duplicate captions", "no dev split"}
    assert found["duplicate captions"]["text"].endswith("repeat an earlier one of the same image; is that meant?")
    lines[5] = "the same"
    write_lines(tmp_path / "train_caps.txt", lines)
    text = findings(mispair("check", tmp_path, "--json"))["duplicate captions"]["text"]
    assert text.endswith("repeat an earlier one (4 of the same image); is that meant?")


def test_bytes_that_are_not_utf8(tmp_path: Path, mispair: Run) -> None:
    path = precomp(tmp_path) / "train_caps.txt"
    lines = path.read_bytes().split(b"\n")
    lines[16] = b"caf\xe9"
    path.write_bytes(b"\n".join(lines))
    ran = mispair("check", tmp_path)
    assert ran.code == 1
    assert "not UTF-8 in line 17" in ran.out


def test_ids_missing_on_either_side(tmp_path: Path, mispair: Run) -> None:
    np.save(tmp_path / "f.npy", features(6))
    write_lines(tmp_path / "ids.txt", ["im0", "im1", "im2", "im3", "im4", "other"])
    ran = mispair("check", table(tmp_path), "--features", tmp_path / "f.npy", "--ids", tmp_path / "ids.txt", "--json")
    assert ran.code == 1
    found = findings(ran)
    assert found["ids without features"]["rows"] == [7]
    assert found["features without a pair"]["count"] == 1


def test_a_table_says_which_columns_it_used(tmp_path: Path, mispair: Run) -> None:
    path = write_lines(tmp_path / "p.tsv", ["filepath\ttitle\twidth", "a.jpg\ta dog\t3"])
    ran = mispair("check", path)
    assert ran.code == 0
    assert "image from 'filepath', caption from 'title'; not used: 'width'" in ran.out
    assert "no features" in ran.out


def test_two_arrays(tmp_path: Path, mispair: Run) -> None:
    np.save(tmp_path / "a.npy", features(6))
    np.save(tmp_path / "b.npy", features(6, 0, 9, "float16", seed=1))
    ran = mispair("check", tmp_path / "a.npy", tmp_path / "b.npy", "--sides", "sketch,photo")
    assert ran.code == 0
    assert "sketch regions" in ran.out
    assert "photo dtype" in ran.out


def test_a_good_index_and_vocabulary(tmp_path: Path, mispair: Run) -> None:
    np.save(tmp_path / "i.npy", np.arange(7)[::-1].copy())
    Vocabulary.build(["a dog ."], 1).save(tmp_path / "v.json")
    data = precomp(tmp_path / "data", splits=("train", "dev"))
    ran = mispair("check", data, "--noise", tmp_path / "i.npy", "--vocabulary", tmp_path / "v.json", "--json")
    assert ran.code == 0
    content = json.loads(ran.out)
    assert content["vocabulary"] == 7
    assert content["splits"][0]["unknown"] == pytest.approx(0.7)


def test_help_teaches_and_loads_nothing_heavy() -> None:
    code = "import sys; from mispair.cli.app import main; sys.argv = ['mispair', 'check', '--help']; main()"
    heavy = "assert not {'torch', 'pyarrow', 'numpy'} & set(sys.modules), 'heavy imports'"
    program = f"import sys\ntry:\n    {code}\nfinally:\n    {heavy}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "mispair check f30k_precomp" in ran.stdout


def test_the_process_exits_with_2_and_one_line(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mispair", "check", str(tmp_path / "no")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1


def test_a_name_that_is_no_text_can_still_be_printed(tmp_path: Path) -> None:
    folder = precomp(Path(os.fsdecode(os.fsencode(tmp_path) + b"/f30k\xff[red]")), splits=("train", "dev"))
    ran = subprocess.run([sys.executable, "-m", "mispair", "check", folder], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert b"f30k?[red]" in ran.stdout


def test_a_folder_of_pictures_says_which_are_broken(tmp_path: Path, mispair: Run) -> None:
    write_pictures(tmp_path, ["a.png", "b.png", "c.png", "d.png"])
    (tmp_path / "b.png").write_bytes(picture(1)[:60])
    (tmp_path / "c.png").write_bytes(b"")
    (tmp_path / "d.png").write_bytes(picture(0))
    (tmp_path / "e.jpg").write_bytes(picture(4, "JPEG", (40, 30)))
    ran = mispair("check", tmp_path, "--json")
    assert ran.code == 1
    (split,) = json.loads(ran.out)["splits"]
    assert split["pictures"] == {
        "pictures": 5, "kinds": {"png": 2, "jpeg": 1}, "smallest": 7, "largest": 40, "broken": 2,
    }  # fmt: skip
    assert findings(ran)["broken pictures"]["rows"] == [1, 2]
    assert "empty file" in findings(ran)["broken pictures"]["text"]
    assert "'d.png'" in findings(ran)["duplicate pictures"]["text"]
    out = mispair("check", tmp_path).out
    assert "png 2, jpeg 1" in out
    assert "captions per image" not in out
