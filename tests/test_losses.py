"""RobustContrastiveLoss: CLIP's and SigLIP's loss by hand, the functions it stands for, and several processes."""

import doctest
import sys

import numpy as np
import pytest
import torch

from mispair import losses
from mispair.functional import alignment_divergence, info_nce, partial_transport, symmetric_cross_entropy
from mispair.losses import RobustContrastiveLoss

KINDS = ["infonce", "infonce_rce", "sigmoid"]


def embeddings(n=7, width=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, width, generator=generator, dtype=torch.float64) for _ in range(2)]


def cosines(images, texts):
    unit = [side / side.norm(dim=1, keepdim=True) for side in (images, texts)]
    return unit[0] @ unit[1].T


def slow(kind, images, texts, temperature, bias=-10.0):
    """The loss of every pair, in loops."""
    logits = cosines(images, texts).numpy() / temperature
    n = len(logits)
    out = np.zeros(n)
    for i in range(n):
        for line in (logits[i], logits[:, i]):
            if kind == "sigmoid":
                signs = np.where(np.arange(n) == i, 1, -1)
                out[i] += sum(np.log1p(np.exp(-sign * (z + bias))) for sign, z in zip(signs, line, strict=True)) / 2
                continue
            p = np.exp(line - line.max()) / np.exp(line - line.max()).sum()
            forward = -np.log(p[i])
            reverse = -sum(p[j] * np.log(1 - 1e-7 if j == i else 1e-7) for j in range(n))
            out[i] += (forward if kind == "infonce" else (forward + reverse) / 2) / 2
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_equals_the_loops(kind, n):
    images, texts = embeddings(n)
    found = RobustContrastiveLoss(kind, 0.2)(images, texts, reduction="none")
    assert np.allclose(found.detach(), slow(kind, images, texts, 0.2), atol=1e-6)


def test_equals_the_functions_it_stands_for():
    images, texts = embeddings()
    scores = cosines(images, texts)
    per_pair = RobustContrastiveLoss("infonce", 0.1)(images, texts, reduction="none")
    assert torch.allclose(per_pair, info_nce(scores, 0.1) / 2, atol=1e-7)
    per_pair = RobustContrastiveLoss("infonce_rce", 0.1)(images, texts, reduction="none")
    assert torch.allclose(per_pair, symmetric_cross_entropy(scores, 0.1) / 2, atol=1e-7)
    plan = partial_transport(1 - scores, 0.3, 0.05).plan
    for kind in ("sym_kl", "kl", "cross_entropy", "js"):
        per_pair = RobustContrastiveLoss("infonce", 0.1, divergence=kind)(images, texts, targets=plan, reduction="none")
        both = [alignment_divergence(scores, plan, 0.1, way, kind) for way in ("i2t", "t2i")]
        assert torch.allclose(per_pair, sum(both) / 2, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_identity_is_the_default_target_and_weights_multiply(kind):
    images, texts = embeddings()
    loss = RobustContrastiveLoss(kind)
    per_pair = loss(images, texts, reduction="none")
    assert torch.equal(loss(images, texts, targets=torch.eye(7), reduction="none"), per_pair)
    weights = torch.linspace(0, 1, 7, dtype=torch.float64)
    assert torch.allclose(loss(images, texts, weights=weights), (weights * per_pair).mean())
    assert loss(3 * images, texts / 5) == pytest.approx(loss(images, texts).item())  # lengths do not matter


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_of_weight_zero_still_is_a_negative(kind):
    images, texts = (side.requires_grad_() for side in embeddings(3))
    weights = torch.tensor([1.0, 1.0, 0.0])
    RobustContrastiveLoss(kind, 0.5)(images, texts, weights=weights).backward()
    assert images.grad[2].abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_targets_decide_who_belongs_together(kind):
    """Pairs in a shuffled order, told so, cost what the pairs in order cost."""
    images, texts = embeddings()
    order = torch.tensor([3, 1, 0, 6, 5, 2, 4])
    targets = torch.zeros(7, 7)
    targets[torch.arange(7), order.argsort()] = 1
    loss = RobustContrastiveLoss(kind, 0.2)
    assert loss(images, texts[order], targets=targets).item() == pytest.approx(loss(images, texts).item())


def test_what_learns():
    images, texts = embeddings()
    fixed = RobustContrastiveLoss("sigmoid")
    assert not [p for p in fixed.parameters() if p.requires_grad]
    learning = RobustContrastiveLoss("sigmoid", learn_temperature=True)
    learning(images, texts).backward()
    assert all(p.grad.abs() > 0 for p in learning.parameters())
    assert [
        name for name, p in RobustContrastiveLoss(learn_temperature=True).named_parameters() if p.requires_grad
    ] == ["log_temperature"]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    images, texts = (side.requires_grad_() for side in embeddings(4, 3))
    targets = torch.rand(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss = RobustContrastiveLoss(kind, 0.5).double()
    assert torch.autograd.gradcheck(lambda i, t: loss(i, t, targets=targets), (images, texts))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_embeddings_in_half_precision_are_compared_in_full(kind, half):
    images, texts = (side.to(half) for side in embeddings(64, 16))
    loss = RobustContrastiveLoss(kind, 0.05)
    whole = loss(images.float(), texts.float(), reduction="none")
    assert torch.equal(loss(images, texts, reduction="none"), whole)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(loss(images.float(), texts.float(), reduction="none"), whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RobustContrastiveLoss("clip"), "kind must be one of infonce, infonce_rce, sigmoid, got 'clip'"),
        (lambda: RobustContrastiveLoss(temperature=0), "temperature must be positive, got 0"),
        (lambda: RobustContrastiveLoss(divergence="l2"), "divergence must be one of"),
        (lambda: RobustContrastiveLoss(local_loss=True), "local_loss=True needs gather=True"),
        (lambda: RobustContrastiveLoss("infonce_rce", divergence="js"), "by cross entropy both ways"),
        (lambda: RobustContrastiveLoss()(torch.rand(3, 2), torch.rand(4, 2)), r"alike, got \(3, 2\) and \(4, 2\)"),
        (lambda: RobustContrastiveLoss()(*embeddings(3), weights=torch.ones(3, 1)), r"shape \(3,\), got \(3, 1\)"),
        (lambda: RobustContrastiveLoss()(*embeddings(3), targets=torch.ones(3, 4)), r"must be \(3, 3\)"),
        (lambda: RobustContrastiveLoss()(*embeddings(3), targets=torch.ones(3)), "must be a matrix"),
        (lambda: RobustContrastiveLoss()(*embeddings(3), reduction="sum"), "mean or none, got 'sum'"),
        (
            lambda: RobustContrastiveLoss()(*embeddings(3), weights=torch.tensor([1.0, -0.5, 1.0])),
            r"weights must be numbers of at least 0, got -0\.5",
        ),
        (
            lambda: RobustContrastiveLoss()(*embeddings(2), weights=torch.tensor([1.0, float("nan")])),
            "weights must be numbers of at least 0, got nan",
        ),
        (
            lambda: RobustContrastiveLoss("sigmoid")(
                *embeddings(2), targets=torch.tensor([[1.0, 0], [float("inf"), 1]])
            ),
            "targets must be numbers of at least 0, got inf",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_example_runs():
    assert doctest.testmod(losses).failed == 0


WORLD = 2
CASES = [(kind, local_loss, soft) for kind in KINDS for local_loss in (False, True) for soft in (False, True)]


def _given(soft):
    """Six pairs with weights, and soft targets or the given pairs."""
    weights = torch.linspace(0.0, 1, 6, dtype=torch.float64)
    targets = torch.rand(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return *embeddings(6), weights, targets if soft else None


def main():
    """One process of several, see `tests/forks.py`."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    mine = slice(3 * rank, 3 * rank + 3)
    found = []
    for kind, local_loss, soft in CASES:
        images, texts, weights, targets = _given(soft)
        own = [side[mine].clone().requires_grad_() for side in (images, texts)]
        loss = RobustContrastiveLoss(kind, 0.2, learn_temperature=True, bias=-2, gather=True, local_loss=local_loss)
        value = loss.double()(*own, weights=weights[mine], targets=targets)
        value.backward()
        learned = [p.grad for p in loss.parameters() if p.requires_grad]
        found.append([value.detach(), *(side.grad for side in own), *learned])
    torch.save(found, f"{sys.argv[1]}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def by_processes(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    ran = forks.run(folder, program="tests.test_losses", ranks=WORLD)
    assert ran.code == 0, ran.err
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(WORLD)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_several_processes_are_one(by_processes, case):
    """Weights, soft targets and what is learned of the temperature and the bias, of every kind."""
    kind, _, soft = case
    images, texts, weights, targets = _given(soft)
    images.requires_grad_()
    texts.requires_grad_()
    loss = RobustContrastiveLoss(kind, 0.2, learn_temperature=True, bias=-2).double()
    whole = loss(images, texts, weights=weights, targets=targets)
    whole.backward()
    parts = [found[CASES.index(case)] for found in by_processes]
    assert torch.allclose(torch.stack([value for value, *_ in parts]).mean(), whole)
    for side, grad in ((1, images.grad), (2, texts.grad)):
        # What averaging over processes makes of it is the gradient of the whole batch.
        assert torch.allclose(torch.cat([part[side] for part in parts]) / WORLD, grad)
    learned = [p.grad for p in loss.parameters() if p.requires_grad]
    assert len(learned) == (2 if kind == "sigmoid" else 1)
    for k, grad in enumerate(learned, 3):
        assert torch.allclose(torch.stack([part[k] for part in parts]).mean(), grad)
