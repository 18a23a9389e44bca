"""Our losses and solver in a plain PyTorch loop: find the mismatched pairs, weigh them down, rematch them.

Two linear towers on made-up features, 40 % of the pairs mismatched. Nothing of the trainer is used:
`RobustContrastiveLoss` is a module, the mixture and the transport are functions.
"""

from __future__ import annotations

import torch

from mispair.functional import fit_beta_mixture, partial_transport, rematching_loss, retrieval_metrics
from mispair.losses import RobustContrastiveLoss

PAIRS, TEST, WIDTH, BATCH, EPOCHS, WARM_UP = 3000, 500, 32, 128, 12, 4


def make_pairs(rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features of both sides, (PAIRS + TEST, .), and which training pairs are mismatched, (PAIRS,)."""
    meaning = torch.randn(PAIRS + TEST, WIDTH, generator=rng)
    sides = [meaning @ torch.randn(WIDTH, 48, generator=rng) for _ in range(2)]
    images, texts = (side + 5 * torch.randn(side.shape, generator=rng) for side in sides)
    mismatched = torch.rand(PAIRS, generator=rng) < 0.4
    chosen = mismatched.nonzero()[:, 0]
    texts[chosen] = texts[chosen.roll(1)]
    return images, texts, mismatched


def train(robust: bool) -> float:
    """Train two towers and return the sum of recalls on clean test pairs."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    images, texts, mismatched = make_pairs(rng)
    towers = torch.nn.ModuleList([torch.nn.Linear(48, WIDTH) for _ in range(2)])
    loss = RobustContrastiveLoss("infonce_rce" if robust else "infonce", temperature=0.1)
    optimizer = torch.optim.Adam(towers.parameters(), 3e-3)
    p_mismatch = torch.zeros(PAIRS)
    for epoch in range(EPOCHS):
        if robust and epoch >= WARM_UP:  # who is mismatched shows in the losses
            with torch.no_grad():
                parts = torch.arange(PAIRS).split(BATCH)
                losses = torch.cat([loss(towers[0](images[i]), towers[1](texts[i]), reduction="none") for i in parts])
            p_mismatch = fit_beta_mixture(losses).posterior_mismatched(losses).float()
        for ids in torch.randperm(PAIRS, generator=rng).split(BATCH):
            a, b = towers[0](images[ids]), towers[1](texts[ids])
            total = loss(a, b, weights=1 - p_mismatch[ids])
            suspects = (p_mismatch[ids] > 0.5).nonzero()[:, 0]
            if len(suspects) > 16:  # their captions may belong to another image of the batch
                unit = torch.nn.functional.normalize
                scores = unit(a[suspects], dim=1) @ unit(b[suspects], dim=1).T
                given = torch.eye(len(suspects), dtype=torch.bool)
                plan = partial_transport(1 - scores.detach(), mass=0.1, entropy=0.05, forbidden=given).plan
                total = total + 0.1 * sum(part.mean() for part in rematching_loss(scores, plan, 0.1))
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
    if robust:
        right = ((p_mismatch > 0.5) == mismatched).float().mean()
        print(f"{right:.0%} of the pairs are judged rightly")
    with torch.no_grad():
        a, b = towers[0](images[PAIRS:]), towers[1](texts[PAIRS:])
        scores = torch.nn.functional.normalize(a, dim=1) @ torch.nn.functional.normalize(b, dim=1).T
    return retrieval_metrics(scores, captions_per_image=1)["rsum"]


if __name__ == "__main__":
    print(f"plain   rSum {train(robust=False):.1f}")
    print(f"robust  rSum {train(robust=True):.1f}")
