"""`mispair demo`: the main job, on embedded data."""

from __future__ import annotations


def demo() -> None:
    """Show what mispair does, on data it generates itself.

    For now the two pieces of mathematics at the bottom: a mixture tells mismatched pairs by their loss, and a partial
    transport finds the partners they should have had.
    """
    import numpy as np
    import torch
    from rich.console import Console
    from rich.table import Table

    from mispair.functional.detection import detection_metrics
    from mispair.functional.mixture import fit_beta_mixture
    from mispair.functional.transport import partial_transport

    rng = np.random.default_rng(0)
    console = Console()

    split = Table(title="Which pairs are mismatched? Losses of 20,000 pairs", title_justify="left")
    for heading in ("injected", "estimated", "95 % interval", "AUROC", "decided right"):
        split.add_column(heading, justify="right")
    for rate in (0.2, 0.4, 0.6, 0.8):
        wrong = rng.random(20_000) < rate
        losses = np.where(wrong, rng.beta(9, 5, 20_000), rng.beta(2, 12, 20_000))
        fit = fit_beta_mixture(losses)
        posterior = fit.posterior_mismatched(losses)
        low, high = fit.mismatch_rate_ci
        split.add_row(
            f"{wrong.mean():.3f}",
            f"{fit.mismatch_rate:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{detection_metrics(posterior, wrong)['auroc']:.4f}",
            f"{100 * ((posterior > 0.5) == wrong).mean():.1f} %",
        )
    console.print(split)

    rematch = Table(title="What should they have been? A batch of 128, 30 true partners in it", title_justify="left")
    for heading in ("mass asked", "mass moved", "rounds", "lands on a true partner", "on the given pair"):
        rematch.add_column(heading, justify="right")
    images = rng.standard_normal((128, 64))
    texts = rng.standard_normal((128, 64))
    partner = rng.permutation(128)[:30]
    texts[(partner + 1) % 128] = images[partner] + 0.7 * rng.standard_normal((30, 64))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    cost = torch.from_numpy(1 - images @ texts.T)
    for mass in (0.1, 0.2, 0.5, 1.0):
        alignment = partial_transport(cost, mass, 0.07, torch.eye(128, dtype=torch.bool))
        found = float(alignment.plan[partner, (partner + 1) % 128].sum()) / mass
        given = float(alignment.plan.diagonal().sum()) / mass
        rematch.add_row(
            f"{mass:.2f}", f"{alignment.mass:.5f}", str(alignment.iterations), f"{100 * found:.0f} %", f"{given:.0%}"
        )
    console.print(rematch)
    console.print(
        "Moving only what has a partner (mass near 30/128) keeps the refined pairs true: that is partial transport."
    )
