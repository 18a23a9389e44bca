"""VSE by hand: what each combination of reading and pooling computes, item by item."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mispair.models import InputSizes, build_model
from mispair.models.vse import VSEConfig
from tests.models.batches import TEXT_WIDTH, VOCABULARY, WIDTH, images, sequences, unpadded, words


def _text_vector(model: nn.Module, text: Tensor) -> Tensor:
    side = model.texts
    parts = text if side.table is None else side.table.table(text)
    if model.config.words == "bag":
        if model.config.pooling == "mean":
            return side.project(parts.mean(0))
        return _gpo(side.pool, side.project(parts))
    if model.config.pooling == "mean":
        return side.gru(parts[None])[0][0, -1]
    ahead = side.gru.ahead(parts[None])[0][0]
    back = side.gru.back(parts.flip(0)[None])[0][0].flip(0)
    return _gpo(side.pool, (ahead + back) / 2)


def _image_vector(model: nn.Module, image: Tensor) -> Tensor:
    side = model.images
    if model.config.pooling == "mean":
        return side.project(image).mean(0)
    norm = side.norm
    hidden = (side.inner(image) - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
    return _gpo(side.pool, side.project(image) + side.outer(hidden.relu()))


def _gpo(pool: nn.Module, values: Tensor) -> Tensor:
    return pool.weights(len(values))[-1] @ values.sort(0, descending=True).values


@pytest.mark.parametrize("text_side", ["words", "features"])
@pytest.mark.parametrize("pooling", ["mean", "gpo"])
@pytest.mark.parametrize("reading", ["gru", "bag"])
def test_cosines_of_hand_made_vectors(reading: str, pooling: str, text_side: str) -> None:
    model = _model(reading, pooling, text_side).eval()
    pictures = images([4, 1, 6, 2])
    texts = words([3, 7, 1]) if text_side == "words" else sequences([3, 7, 1])
    found = model.similarity(model.encode_images(*pictures), model.encode_texts(*texts))
    mine = torch.stack([_image_vector(model, image) for image in unpadded(*pictures)])
    other = torch.stack([_text_vector(model, text) for text in unpadded(*texts)])
    torch.testing.assert_close(found, normalize(mine) @ normalize(other).T, rtol=1e-9, atol=1e-11)


def _model(reading: str, pooling: str, text_side: str) -> nn.Module:
    torch.manual_seed(2)
    sizes = InputSizes(
        image_width=WIDTH,
        vocabulary_size=VOCABULARY if text_side == "words" else None,
        text_width=TEXT_WIDTH if text_side == "features" else None,
    )
    config = VSEConfig(embed=12, word_dim=7, words=reading, pooling=pooling)  # type: ignore[arg-type]
    return build_model(config, sizes).double()


@pytest.mark.parametrize("pooling", ["mean", "gpo"])
def test_every_parameter_learns(pooling: str) -> None:
    model = _model("gru", pooling, "words").train()
    scores = model.similarity(model.encode_images(*images([4, 1, 6])), model.encode_texts(*words([3, 7, 1])))
    (scores * torch.randn_like(scores)).sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
