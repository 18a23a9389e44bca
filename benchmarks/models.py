"""Backbones against the per-caption loop that published implementations run (`tests/model_oracles.py`).

The published batch of 128 (MISPAIR_BENCH_BATCH for another; smaller ones are quicker and flatter the loop, since few
captions then share a length). Ours and the loop do the same work and share the encoders; nothing is extrapolated.
Peak memory: `python -m benchmarks.models memory sgr ours`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from tests import model_oracles as oracle
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax

from benchmarks.timing import Case
from mispair.evaluation_mode import evaluation_mode
from mispair.models import InputSizes, build_model, model_preset
from mispair.retrieval.scoring import score_grid
from mispair.retrieval.shortlist import shortlist_scores
from mispair.types import Encoded

BATCH = int(os.environ.get("MISPAIR_BENCH_BATCH", "128"))
REGIONS, VOCABULARY = 36, 8481
MEMORY = {"sgr": 4.0, "saf": 2.5}  # GB a whole step may take at the published size, batch 128


@dataclass(frozen=True)
class Setting:
    """A model and two batches, matched and mismatched."""

    model: nn.Module
    images: tuple[Tensor, Tensor]
    texts: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]
    plan: Tensor

    def encoded(self, at: int = 0) -> tuple[Encoded, Encoded]:
        real = torch.ones(self.images[at].shape[:2], dtype=torch.bool)
        return self.model.encode_images(self.images[at], real), self.model.encode_texts(*self.texts[at])

    def ours(self, pictures: Encoded, texts: Encoded) -> Tensor:
        return self.model.link(self.model.similarity(pictures, texts))

    def ours_sparse(self, pictures: Encoded, texts: Encoded) -> Tensor:
        """For a loss that reads few cells, as the methods with hardest negatives ask for it."""
        return self.model.link(self.model.similarity(pictures, texts, sparse=True))

    def loop(self, pictures: Encoded, texts: Encoded) -> Tensor:
        if self.model.config.name == "imram":
            return oracle.imram_scores(self.model, list(pictures.values), oracle.unpad(texts))
        return oracle.scores(self.model, list(pictures.values), oracle.unpad(texts)).sigmoid()


def setting(name: str, size: str, batch: int = BATCH) -> Setting:
    torch.manual_seed(0)
    width = 2048 if size == "paper" else 256
    sizes = InputSizes(image_width=width, vocabulary_size=VOCABULARY, regions=REGIONS)
    model = build_model(model_preset(name, size), sizes).train()
    images = torch.randn(batch, REGIONS, width), torch.randn(batch, REGIONS, width)
    plan = torch.rand(batch, batch).pow(8)
    return Setting(model, images, (captions(batch), captions(batch)), plan / plan.sum())


def captions(count: int) -> tuple[Tensor, Tensor]:
    """Random words; lengths about 14.4 with start and end, as in Flickr30K."""
    lengths = (torch.randn(count) * 4 + 14.4).round().clamp(6, 30)
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    return torch.randint(0, VOCABULARY, mask.shape), mask


def grid(work: Setting, score: Callable[[Encoded, Encoded], Tensor]) -> Callable[[], None]:
    """Scores of a batch and a backward through every one of them; the encoders are left out."""
    with torch.no_grad():
        pictures, texts = (Encoded(e.values.clone(), e.mask) for e in work.encoded())
    weights = torch.linspace(-1, 1, len(pictures) * len(texts)).view(len(pictures), len(texts))

    def run() -> None:
        work.model.zero_grad()
        for side in (pictures, texts):
            side.values.requires_grad_().grad = None
        (score(pictures, texts) * weights).sum().backward()

    return run


def triplet_step(work: Setting, score: Callable[[Encoded, Encoded], Tensor]) -> Callable[[], None]:
    """One hardest-negative step: encoders, scores, loss, all gradients."""

    def run() -> None:
        work.model.zero_grad()
        oracle.hardest_triplet(score(*work.encoded())).backward()

    return run


def whole_step(
    work: Setting,
    score: Callable[[Encoded, Encoded], Tensor],
    rank: Callable[[Encoded, Encoded], Tensor],
    keys: int | None,
) -> Callable[[], None]:
    """An L2RM step with a given plan: cost pass, ranking on matched pairs, symmetric KL on mismatched ones.

    `rank` scores for the hardest-negative loss; `keys`: the images the cost pass is supervised on. The released step
    (None) encodes for the cost pass anew and scores all images; ours reads what the step has encoded, as `L2RM._teach`.
    """

    def run() -> None:
        work.model.zero_grad()
        matched = work.encoded() if keys else None
        with evaluation_mode(work.model):
            pictures, texts = work.encoded() if matched is None else (side.detached() for side in matched)
            score(pictures.take(slice(0, keys)), texts)
        ranking = oracle.hardest_triplet(rank(*(matched or work.encoded())))
        (ranking + _symmetric_kl(score(*work.encoded(1)), work.plan)).backward()

    return run


def _symmetric_kl(scores: Tensor, plan: Tensor, temperature: float = 0.05) -> Tensor:
    total = scores.new_zeros(())
    for axis in (0, 1):
        ours, target = (
            log_softmax(scores / temperature, axis),
            (plan / plan.sum(axis, keepdim=True)).clamp_min(1e-10).log(),
        )
        total = (
            total
            + kl_div(ours, target, log_target=True, reduction="sum")
            + kl_div(target, ours, log_target=True, reduction="sum")
        )
    return total / (2 * len(scores))


def grid_case(name: str, floor: float, size: str = "paper", batch: int = BATCH) -> Case:
    work = setting(name, size, batch)
    path = f"{name} grid, forward and backward, {size} size"
    return Case(
        path,
        "per-caption loop",
        floor,
        grid(work, work.ours),
        grid(work, work.loop),
        1,
        note=f"batch {batch}",
    )


def triplet_case(floor: float) -> Case:
    work = setting("sgr", "paper")
    ours, loop = triplet_step(work, work.ours_sparse), triplet_step(work, work.loop)
    return Case(
        "sgr hardest-negative step, paper size",
        "loop, full backward",
        floor,
        ours,
        loop,
        1,
        note=f"batch {BATCH}",
    )


def whole_case(name: str, size: str, floor: float) -> Case:
    work = setting(name, size)
    ours = whole_step(work, work.ours, work.ours_sparse, keys=7)
    loop = whole_step(work, work.loop, work.loop, keys=None)
    check = (lambda: peak_check(name)) if size == "paper" else None
    return Case(
        f"{name} L2RM step, {size}",
        "loop, all passes",
        floor,
        ours,
        loop,
        1,
        note=f"batch {BATCH}",
        check=check,
    )


def scoring_case(name: str, floor: float, images: int = 1000) -> Case:
    """A slice of 1,000 x 5,000 (cost is linear in texts): three lengths, 16 texts each, as 5,000 texts fill theirs."""
    work = setting(name, "paper", batch=2)
    model = work.model.eval()
    with torch.no_grad():
        real = torch.ones(images, REGIONS, dtype=torch.bool)
        pictures = model.encode_images(torch.randn(images, REGIONS, 2048), real)
        mask = torch.arange(19) < torch.tensor([10, 14, 19]).repeat_interleave(16)[:, None]
        words = model.encode_texts(torch.randint(0, VOCABULARY, mask.shape), mask)

    def loop() -> None:
        with torch.no_grad():
            oracle.scores(model, list(pictures.values), oracle.unpad(words)).sigmoid()

    ours = lambda: score_grid([model], [pictures], [words])  # noqa: E731
    return Case(f"{name} scoring, paper size", "per-caption loop", floor, ours, loop, 1, note=f"{images} x 48 of 5000")


def two_stage_case(floor: float) -> Case:
    """Speed of 8 candidates per query; what a shortlist keeps is a matter of trained models (docs/backbones.md)."""
    work = setting("sgr", "small", batch=2)
    model = work.model.eval()
    with torch.no_grad():
        real = torch.ones(600, REGIONS, dtype=torch.bool)
        pictures = model.encode_images(torch.randn(600, REGIONS, 256), real)
        words = model.encode_texts(*captions(400))
    sides = ([model], [pictures], [words])
    ours = lambda: shortlist_scores(*sides, shortlist=8, check=0)  # noqa: E731
    return Case(
        "two-stage scoring, sgr small",
        "ours, exhaustive",
        floor,
        ours,
        lambda: score_grid(*sides),
        1,
        note="600 x 400",
    )


def peak_check(name: str) -> str:
    """Peak memory of our whole step at the published size and batch 128, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.models", "memory", name, "ours"]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if peak > MEMORY[name]:
        raise AssertionError(f"the {name} step took {peak:.2f} GB, at most {MEMORY[name]} GB are allowed")
    return f"peak {peak:.2f} GB at 128"


def peak_memory(name: str, way: str) -> float:
    """Gigabytes after one whole step of batch 128; `way` is ours or loop (which needs about 17 GB)."""
    torch.set_num_threads(1)
    work = setting(name, "paper", batch=128)
    if way == "ours":
        whole_step(work, work.ours, work.ours_sparse, keys=7)()
    else:
        whole_step(work, work.loop, work.loop, keys=None)()
    # Not getrusage: after a fork it starts from the parent's peak.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def cases() -> list[Case]:
    """Floors of SGR at paper size are what its products allow (docs/backbones.md): more is gained from passes saved."""
    return [
        grid_case("sgr", 1.55),
        grid_case("saf", 1.4),
        grid_case("imram", 1.5, "small", 32),
        triplet_case(3.4),
        whole_case("sgr", "paper", 2.4),
        whole_case("saf", "paper", 1.5),
        whole_case("sgr", "small", 2.6),
        whole_case("saf", "small", 1.5),
        scoring_case("sgr", 1.6),
        scoring_case("saf", 1.2),
        two_stage_case(8.0),
    ]


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "memory":
        sys.exit("usage: python -m benchmarks.models memory sgr|saf ours|loop")
    print(peak_memory(sys.argv[2], sys.argv[3]))
