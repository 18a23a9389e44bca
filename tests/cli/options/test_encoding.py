"""How pictures and captions are encoded, by what is trained on them."""

import pytest

from mispair.cli.options.encoding import EncodeBothOptions
from mispair.errors import InputError


def options(texts=None, cells=False):
    return EncodeBothOptions(encoder="basic", cells=cells, batch=32, workers=None, texts=texts)


@pytest.mark.parametrize(
    ("model", "texts"), [(None, None), ("vse", None), ("dual", True), ("dual:paper", True), ("sgr", False)]
)
@pytest.mark.parametrize("cells", [False, True])
def test_captions_become_what_the_model_reads(model, texts, cells):
    assert options(cells=cells).encoding(None, model).texts is texts


def test_words_for_a_model_of_vectors_are_refused_before_anything_is_encoded():
    with pytest.raises(InputError, match="dual reads vectors of captions, not words: leave --texts words out"):
        options("words").encoding(None, "dual:small")
    assert options("words").encoding(None, "vse").texts is False
