import pytest

from mispair.errors import InputError
from mispair.nested_values import lay_over, parse_assignment


def test_an_assignment_is_a_table_of_tables():
    assert parse_assignment("data.noise.rate=0.4") == {"data": {"noise": {"rate": 0.4}}}
    assert parse_assignment(" seed =3") == {"seed": 3}
    assert parse_assignment("train.decay_at=[1, 2]") == {"train": {"decay_at": [1, 2]}}
    assert parse_assignment("model.words=a=b") == {"model": {"words": "a=b"}}


@pytest.mark.parametrize("text", ["epochs", "=3", " =3"])
def test_what_is_no_assignment_is_refused_with_an_example(text):
    with pytest.raises(InputError, match=r"--set takes section.name=value, got .*train.epochs=10"):
        parse_assignment(text)


def test_what_lies_over_wins_and_the_rest_stays():
    base = {"train": {"epochs": 3, "lr": 0.1}, "seed": 0}
    assert lay_over(base, {"train": {"lr": 0.2}}) == {"train": {"epochs": 3, "lr": 0.2}, "seed": 0}
    assert lay_over(base, {"train": 5}) == {"train": 5, "seed": 0}
    assert base == {"train": {"epochs": 3, "lr": 0.1}, "seed": 0}


def test_a_section_of_another_name_starts_from_its_own_defaults():
    base = {"model": {"name": "sgr", "embed": 256}}
    assert lay_over(base, {"model": {"name": "vse"}}) == {"model": {"name": "vse"}}
    assert lay_over(base, {"model": {"name": "sgr", "steps": 2}}) == {
        "model": {"name": "sgr", "embed": 256, "steps": 2}
    }
