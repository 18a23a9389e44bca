"""`mispair report` as a person uses it."""

import pytest

from mispair.cli.app import main
from tests.report.samples import HOSTILE, audit_of


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["mispair", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_a_page_is_written_and_named(tmp_path, monkeypatch, capsys):
    audit_of(60, captions=[text.encode(errors="replace").decode() for text in HOSTILE]).save(tmp_path / "audit")
    out = tmp_path / "new" / "page.html"
    assert run(monkeypatch, tmp_path / "audit", "-o", out) == 0
    assert str(out) in capsys.readouterr().out
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(out.parent.iterdir()) == [out], "nothing temporary is left"


def test_a_page_that_exists_is_not_replaced_unasked(tmp_path, monkeypatch, capsys):
    audit_of(40).save(tmp_path / "audit")
    out = tmp_path / "page.html"
    out.write_text("mine")
    assert run(monkeypatch, tmp_path / "audit", "-o", out) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert run(monkeypatch, tmp_path / "audit", "-o", out, "--force") == 0
    assert out.read_text() != "mine"


@pytest.mark.parametrize("wrong", ["absent", "empty", "damaged"])
def test_mistakes_cost_one_sentence_and_write_nothing(tmp_path, monkeypatch, capsys, wrong):
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "audit.json").write_text("{")
    (tmp_path / "damaged" / "audit.parquet").write_text("PAR1")
    assert run(monkeypatch, tmp_path / wrong, "-o", tmp_path / "page.html") == 2
    error = capsys.readouterr().err
    assert error.startswith("mispair: ")
    assert wrong in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_folder_is_no_page(tmp_path, monkeypatch, capsys):
    audit_of(40).save(tmp_path / "audit")
    assert run(monkeypatch, tmp_path / "audit", "-o", tmp_path) == 2
    assert "is a folder" in capsys.readouterr().err
