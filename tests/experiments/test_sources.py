"""Every table of figures in the README has a line that says what makes it."""

from pathlib import Path

from benchmarks.sources import SOURCES

from mispair.experiments.spec import load_spec

README = Path(__file__).parents[2] / "README.md"


def headings_with_tables():
    heading, found = "", set()
    lines = README.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|---") and not lines[number + 1].startswith("| !["):  # pictures are no figures
            found.add(heading)
    return found


def test_every_table_of_the_readme_has_a_source():
    assert headings_with_tables() <= {heading for heading, _, _ in SOURCES}


def test_the_named_experiments_have_the_named_rows():
    for _, _, command in SOURCES:
        words = command.split()
        if words[:3] == ["mispair", "experiments", "run"]:
            spec, _ = load_spec(words[3])
            rows = [word.removeprefix("row=") for word in words if word.startswith("row=")]
            assert set(rows) <= set(spec.rows)
