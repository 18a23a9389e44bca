import pytest
import torch

from mispair.errors import InputError
from mispair.models import InputSizes, build_model, encodes_one_vector, model_preset
from mispair.models.one_vector import OneVectorBackbone, as_one_part


@pytest.fixture(params=["vse", "dual"])
def network(request):
    torch.manual_seed(0)
    preset = model_preset(request.param, "small")
    return build_model(preset.model_copy(update={"embed": 7}), InputSizes(image_width=7, text_width=7)).eval()


@torch.no_grad()
def test_a_score_is_the_cosine_of_the_two_vectors(network):
    images = network.encode_images(torch.randn(5, 2, 7), torch.ones(5, 2, dtype=torch.bool))
    texts = network.encode_texts(torch.randn(3, 4, 7), torch.ones(3, 4, dtype=torch.bool))
    assert isinstance(network, OneVectorBackbone)
    assert images.values.shape == (5, 1, 7)
    assert images.mask.tolist() == [[True]] * 5
    seen, read = network.pool_images(images), network.pool_texts(texts)
    scores = network.similarity(images, texts)
    for i in range(5):
        for j in range(3):
            assert float(scores[i, j]) == pytest.approx(
                float(torch.cosine_similarity(seen[i], read[j], dim=0)), abs=1e-6
            )
    rows, cols = torch.tensor([4, 0, 4]), torch.tensor([2, 1, 0])
    torch.testing.assert_close(network.paired(images, texts, rows, cols), scores[rows, cols])


def test_what_another_model_encoded_is_refused(network):
    other = as_one_part(torch.randn(2, 5), torch.ones(2, 3, dtype=torch.bool))
    own = as_one_part(torch.randn(2, 7), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(InputError, match="encoded texts must have width 7"):
        network.similarity(own, other)


def test_the_name_says_whether_an_item_is_one_vector():
    assert [encodes_one_vector(name) for name in ("vse", "dual", "sgr", "saf", "imram")] == [True, True] + [False] * 3
    with pytest.raises(InputError, match="there is no model 'vsee'"):
        encodes_one_vector("vsee")
