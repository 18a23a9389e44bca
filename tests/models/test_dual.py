"""Dual: an untrained head on a joint encoder is the encoder; widths that do not fit are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from mispair.config.load import load_config
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.functional import pair_loss, sigmoid_loss
from mispair.losses import RobustContrastiveLoss
from mispair.models import InputSizes, build_model
from mispair.models.dual import DualConfig
from mispair.types import Encoded
from tests.pictures.samples import colours

WIDTH, ITEMS = 13, 11
CONFIGS = Path(__file__).parents[2] / "configs"


def vectors(seed: int, width: int = WIDTH) -> torch.Tensor:
    return torch.randn(ITEMS, 1, width, generator=torch.Generator().manual_seed(seed))


def both(model: torch.nn.Module, width: int = WIDTH) -> tuple[Encoded, Encoded]:
    real = torch.ones(ITEMS, 1, dtype=torch.bool)
    return model.encode_images(vectors(0), real), model.encode_texts(vectors(1, width), real)


def make(text_width: int = WIDTH, **values: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return build_model(DualConfig(embed=7, hidden=5, **values), InputSizes(image_width=WIDTH, text_width=text_width))


@pytest.mark.parametrize("values", [{}, {"space": "joint"}, {"temperature": "learned", "bias": -0.5}])
def test_an_untrained_head_ranks_as_the_pretrained_model_does(values: dict[str, object]) -> None:
    model = make(**values)
    cosines = normalize(vectors(0)[:, 0], dim=-1) @ normalize(vectors(1)[:, 0], dim=-1).T
    assert torch.equal(model.similarity(*both(model)), cosines)
    shift = values.get("bias", 0.0)
    torch.testing.assert_close(model.link(cosines), cosines + shift)


@pytest.mark.parametrize("values", [{}, {"temperature": "learned", "bias": -0.5}, {"space": "separate"}])
def test_every_parameter_learns(values: dict[str, object]) -> None:
    model = make(**values)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    before = {key: value.detach().clone() for key, value in model.named_parameters()}
    losses = []
    for _ in range(40):
        loss = sigmoid_loss(model.link(model.similarity(*both(model)))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert all(not torch.equal(value, before[key]) for key, value in model.named_parameters())


def test_separate_spaces_are_mapped_into_one() -> None:
    model = make(3)
    assert both(model, 3)[0].values.shape == both(model, 3)[1].values.shape == (ITEMS, 1, 7)
    assert make(space="separate").embed == 7
    plain = build_model(DualConfig(embed=7, hidden=0, start="random"), InputSizes(image_width=WIDTH, text_width=3))
    assert sum(p.numel() for p in plain.parameters()) == (WIDTH + 1 + 3 + 1) * 7


def test_a_grid_counts_as_its_mean() -> None:
    model = make()
    grid = torch.randn(2, 4, WIDTH)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    means = torch.stack([grid[0].mean(0), grid[1, :2].mean(0)])[:, None]
    alone = model.encode_images(means, torch.ones(2, 1, dtype=torch.bool))
    torch.testing.assert_close(model.encode_images(grid, mask).values, alone.values)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="dual reads vectors of both sides, and these texts are words"):
        build_model(DualConfig(), InputSizes(image_width=WIDTH, vocabulary_size=9))
    with pytest.raises(InputError, match="model.space=joint needs vectors of one width, got 13 and 3"):
        make(3, space="joint")


def test_the_scale_has_a_limit() -> None:
    model = make(temperature="learned")
    model.log_scale.data.fill_(9.0)
    assert model.link(torch.ones(())).item() == pytest.approx(5.0)


def test_the_sigmoid_loss_asks_of_every_cell() -> None:
    scores = torch.randn(5, 5, dtype=torch.float64)
    expected = torch.zeros(5, dtype=torch.float64)
    for k in range(5):
        for other in range(5):
            sign = 1 if other == k else -1
            for cell in (scores[k, other], scores[other, k]):
                expected[k] -= torch.log(torch.sigmoid(sign * cell / 0.1)) / 2
    torch.testing.assert_close(pair_loss(scores, "sigmoid", temperature=0.1), expected)
    a, b = normalize(torch.randn(5, 3), dim=-1), normalize(torch.randn(5, 3), dim=-1)
    theirs = RobustContrastiveLoss("sigmoid", 0.1, bias=-10.0)(a, b, reduction="none")
    torch.testing.assert_close(sigmoid_loss(a @ b.T - 1.0, 0.1), theirs)
    with pytest.raises(InputError, match="temperature must be positive"):
        sigmoid_loss(scores, 0.0)


def test_with_the_bias_of_siglip_it_starts_with_the_loss_of_the_library(tmp_path: Path) -> None:
    """temperature 0.05 and bias -0.5 here are a scale of 20 and a bias of -10 there."""
    transformers = pytest.importorskip("transformers")
    hubs = pytest.importorskip("tests.encoders.hubs")
    hubs.siglip(tmp_path)
    library = transformers.SiglipModel.from_pretrained(tmp_path).eval()
    library.logit_scale.data.fill_(float(np.log(20)))
    library.logit_bias.data.fill_(-10.0)
    rng = torch.Generator().manual_seed(0)
    pixels, ids = torch.randn(5, 3, 32, 32, generator=rng), torch.randint(3, 60, (5, 16), generator=rng)
    with torch.no_grad():
        theirs = library(input_ids=ids, pixel_values=pixels, return_loss=True)
    config = load_config(CONFIGS / "f30k" / "l2rm-dual-siglip2.yaml")
    assert (config.method.matched_loss, config.method.temperature, config.model.bias) == ("sigmoid", 0.05, -0.5)
    head = build_model(config.model, InputSizes(image_width=16, text_width=16)).eval()
    real = torch.ones(5, 1, dtype=torch.bool)
    sides = [side[:, None].detach() for side in (theirs.image_embeds, theirs.text_embeds)]
    scores = head.link(head.similarity(head.encode_images(sides[0], real), head.encode_texts(sides[1], real)))
    ours = pair_loss(scores, config.method.matched_loss, temperature=config.method.temperature).mean()
    torch.testing.assert_close(ours.detach(), theirs.loss, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("family", "kind"), [("clip", "CLIPModel"), ("siglip", "SiglipModel")])
def test_on_a_hub_model_it_starts_with_the_scores_of_the_library(tmp_path: Path, family: str, kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    hubs = pytest.importorskip("tests.encoders.hubs")
    getattr(hubs, family)(tmp_path)
    encoder = open_encoder(str(tmp_path), device="cpu")
    pictures, captions = [colours(64, 48), colours(30, 90), colours(200, 200)], ["a dog runs", "two cats and a ball"]
    seen = encoder.encode_images(np.stack([encoder.prepare(p) for p in pictures]), ("vector",))["vector"].values
    said = encoder.encode_texts(captions, ("vector",))["vector"].values
    config = load_config(CONFIGS / "f30k" / f"l2rm-dual-{'clip' if family == 'clip' else 'siglip2'}.yaml")
    sizes = InputSizes(image_width=seen.shape[1], text_width=said.shape[1])
    model = build_model(config.model, sizes).eval()
    both = [torch.from_numpy(side)[:, None] for side in (seen, said)]
    real = [torch.ones(len(side), 1, dtype=torch.bool) for side in both]
    scores = model.similarity(model.encode_images(both[0], real[0]), model.encode_texts(both[1], real[1]))
    library = getattr(transformers, kind).from_pretrained(tmp_path).eval()
    pixels = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")(pictures, return_tensors="pt")
    padding = "max_length" if family == "siglip" else True
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)(
        captions, padding=padding, truncation=True, max_length=16, return_tensors="pt"
    )
    with torch.no_grad():
        mask = None if family == "siglip" else words["attention_mask"]  # SigLIP was trained to read the padding
        whole = library(input_ids=words["input_ids"], attention_mask=mask, **pixels)
    torch.testing.assert_close(scores.detach(), whole.image_embeds @ whole.text_embeds.T, atol=1e-5, rtol=0)


def test_frozen_towers_have_no_rates_and_heads_that_are_started() -> None:
    sizes = InputSizes(image_width=WIDTH, text_width=3)
    started = build_model(DualConfig(embed=7, hidden=0), sizes)
    assert started.rates() == {}
    assert [started.images.basis.shape, started.texts.basis.shape] == [(WIDTH, min(WIDTH, 7)), (3, 3)]
    drawn = build_model(DualConfig(embed=7, hidden=0, start="random"), sizes)
    assert drawn.images.basis is drawn.texts.basis is None
