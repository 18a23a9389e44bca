"""The backbones written the slow, obvious way: one caption after another, unpadded, straight from the papers.

Each function takes a model built by `mispair.models` only to read its weights and its mode. Nothing of its forward
code is used. The loop over captions is how the published implementations run, so this is also what the benchmark
compares against.
"""

from __future__ import annotations

from dataclasses import asdict

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, dropout, leaky_relu

from mispair.types import Encoded


def l2norm(x: Tensor, dim: int = -1) -> Tensor:
    return x / (x.pow(2).sum(dim, keepdim=True).sqrt() + 1e-8)


def encode_regions(model: nn.Module, images: list[Tensor]) -> list[Tensor]:
    """images: (R_i, F) each -> (R_i, D) each."""
    return [l2norm(model.regions.project(image)) for image in images]


def encode_words(model: nn.Module, texts: list[Tensor]) -> list[Tensor]:
    """texts: (L_j,) ids or (L_j, F') features each -> (L_j, D) each; dropout must be off."""
    encoder = model.words
    out = []
    for text in texts:
        parts = text if encoder.embed is None else encoder.embed.table(text)
        if encoder.gru is None:
            out.append(l2norm(encoder.project(parts)))
        else:
            ahead = encoder.gru.ahead(parts[None])[0][0]
            back = encoder.gru.back(parts.flip(0)[None])[0][0].flip(0)
            out.append(l2norm((ahead + back) / 2))
    return out


def unpad(encoded: Encoded) -> list[Tensor]:
    return [values[mask] for values, mask in zip(encoded.values, encoded.mask, strict=True)]


def visual_global(model: nn.Module, images: list[Tensor]) -> Tensor:
    """VisualSA (n, D) of images with the same number of regions, with the published BatchNorm1d over slots."""
    sa = model.image_attention
    values = torch.stack(images)
    local = sa.local(values)
    norm = sa.local_norm
    local = batch_norm(
        local, norm.running_mean, norm.running_var, norm.weight, norm.bias, model.training, norm.momentum, norm.eps
    )
    local = dropout(local.tanh(), sa.dropout.p, model.training)
    overall = dropout(sa.overall_norm(sa.overall(values.mean(1))).tanh(), sa.dropout.p, model.training)
    weights = sa.common(local * overall[:, None]).squeeze(2).softmax(1)
    return l2norm((weights[..., None] * values).sum(1))


def visual_global_ragged(model: nn.Module, images: list[Tensor]) -> Tensor:
    """VisualSA of images with any number of regions; one channel for all regions of the batch. No dropout."""
    sa, norm = model.image_attention, model.image_attention.local_norm
    assert norm.slots is None
    everything = torch.cat([sa.local(image) for image in images]).reshape(1, 1, -1)
    everything = batch_norm(
        everything, norm.running_mean, norm.running_var, norm.weight, norm.bias, model.training, norm.momentum, norm.eps
    )
    locals_ = everything.reshape(-1, images[0].shape[1]).tanh().split([len(image) for image in images])
    overall = sa.overall_norm(sa.overall(torch.stack([image.mean(0) for image in images]))).tanh()
    out = []
    for image, local, g in zip(images, locals_, overall, strict=True):
        weights = sa.common(local * g).squeeze(1).softmax(0)
        out.append(l2norm(weights @ image))
    return torch.stack(out)


def text_global(
    model: nn.Module, words: Tensor, local_drop: Tensor | None = None, overall_drop: Tensor | None = None
) -> Tensor:
    """TextSA of one caption (L, D) -> (D,); dropout by the given masks (already divided by the keep rate)."""
    sa = model.text_attention
    local = sa.local(words).tanh()
    overall = sa.overall(words.mean(0)).tanh()
    if local_drop is not None:
        local, overall = local * local_drop, overall * overall_drop
    weights = sa.common(local * overall).squeeze(1).softmax(0)
    return l2norm(weights @ words)


def scan_attention(queries: Tensor, contexts: Tensor, smooth: float) -> Tensor:
    """queries (n, L, D), contexts (n, R, D) -> attended contexts (n, L, D), not normalised."""
    attention = leaky_relu(contexts @ queries.transpose(1, 2), 0.1)  # (n, R, L)
    attention = l2norm(attention, 2).transpose(1, 2)  # (n, L, R)
    return (attention * smooth).softmax(2) @ contexts


def similarity_nodes(model: nn.Module, regions: Tensor, g_image: Tensor, words: Tensor, g_text: Tensor) -> Tensor:
    """One caption (L, D) against n images with equally many regions -> (n, L+1, S), the global node first."""
    n = len(regions)
    expanded = words[None].expand(n, -1, -1)
    contexts = l2norm(scan_attention(expanded, regions, model.smooth))
    local = l2norm(model.local_map((contexts - expanded) ** 2))
    overall = l2norm(model.global_map((g_image - g_text) ** 2))
    return torch.cat([overall[:, None], local], 1)


def sgr_head(model: nn.Module, nodes: Tensor) -> Tensor:
    for step in model.steps:
        edges = (step.query(nodes) @ step.key(nodes).transpose(1, 2)).softmax(-1)
        nodes = step.graph(edges @ nodes).relu()
    return model.out(nodes[:, 0]).squeeze(1)


def saf_head(model: nn.Module, nodes: Tensor) -> Tensor:
    norm = model.filter_norm
    raw = model.filter(nodes).permute(0, 2, 1)
    gate = batch_norm(
        raw, norm.running_mean, norm.running_var, norm.weight, norm.bias, model.training, norm.momentum, norm.eps
    ).sigmoid()
    gate = gate / (gate.abs().sum(-1, keepdim=True) + 1e-8)
    return model.out(l2norm((gate @ nodes).squeeze(1))).squeeze(1)


HEADS = {"sgr": sgr_head, "saf": saf_head}


def scores(
    model: nn.Module, images: list[Tensor], texts: list[Tensor], text_drops: list[tuple[Tensor, Tensor]] | None = None
) -> Tensor:
    """Logits (n, m) of SGR or SAF by the loop over captions; SAF's statistics are each caption's own."""
    slots = model.image_attention.local_norm.slots
    g_image = visual_global(model, images) if slots else visual_global_ragged(model, images)
    head = HEADS[model.config.name]
    # Stacked once, not once per caption: the loop is also the benchmark's reference and must not be made slow.
    stacked = torch.stack(images) if len({len(image) for image in images}) == 1 else None
    columns = []
    for j, words in enumerate(texts):
        g_text = text_global(model, words, *(text_drops[j] if text_drops else ()))
        if stacked is not None:
            nodes = similarity_nodes(model, stacked, g_image, words, g_text)
        else:
            nodes = torch.cat(
                [similarity_nodes(model, v[None], g[None], words, g_text) for v, g in zip(images, g_image, strict=True)]
            )
        columns.append(head(model, nodes))
    return torch.stack(columns, 1)


def saf_batch_scores(model: nn.Module, images: list[Tensor], texts: list[Tensor]) -> Tensor:
    """SAF in training mode with one set of statistics over every node of every pair."""
    g_image = visual_global(model, images)
    nodes = [similarity_nodes(model, torch.stack(images), g_image, w, text_global(model, w)) for w in texts]
    raw = [model.filter(x)[..., 0] for x in nodes]
    everything = torch.cat([r.reshape(-1) for r in raw])
    norm = model.filter_norm
    everything = batch_norm(
        everything[None, None],
        norm.running_mean,
        norm.running_var,
        norm.weight,
        norm.bias,
        True,
        norm.momentum,
        norm.eps,
    )[0, 0]
    columns = []
    for x, flat in zip(nodes, everything.split([r.numel() for r in raw]), strict=True):
        gate = flat.view(x.shape[:2]).sigmoid()
        gate = gate / (gate.sum(1, keepdim=True) + 1e-8)
        columns.append(model.out(l2norm((gate[..., None] * x).sum(1))).squeeze(1))
    return torch.stack(columns, 1)


def hardest_triplet(scored: Tensor, margin: float = 0.2) -> Tensor:
    """Sum over both directions of the worst violation (3.14 `max`)."""
    n = len(scored)
    own = scored.diagonal()
    eye = torch.eye(n, dtype=torch.bool)
    rows = (margin + scored - own[:, None]).clamp_min(0).masked_fill(eye, 0)
    cols = (margin + scored - own[None]).clamp_min(0).masked_fill(eye, 0)
    return rows.amax(1).sum() + cols.amax(0).sum()


def imram_direction(
    memory: nn.Linear, queries: Tensor, contexts: Tensor, steps: int, smooth: float, norm: bool
) -> Tensor:
    """queries (n, Tq, D) look at contexts (n, Tc, D) `steps` times -> sum of mean cosines, (n,)."""
    q, total = queries, queries.new_zeros(len(queries))
    for _ in range(steps):
        seen = scan_attention(q, contexts, smooth)
        size = (queries.norm(dim=-1) * seen.norm(dim=-1)).clamp_min(1e-8)
        total = total + ((queries * seen).sum(-1) / size).mean(-1)
        gate, candidate = memory(torch.cat([q, seen], -1)).chunk(2, -1)
        gate = gate.sigmoid()
        q = gate * q + (1 - gate) * candidate.tanh()
        q = l2norm(q) if norm else q
    return total


def imram_scores(model: nn.Module, images: list[Tensor], texts: list[Tensor]) -> Tensor:
    """IMRAM scores (n, m) by the loop over captions; images with equally many regions are taken together."""
    stacks = [torch.stack(images)] if len({len(image) for image in images}) == 1 else [image[None] for image in images]
    columns = []
    for text in texts:
        parts = []
        for regions in stacks:
            words = text[None].expand(len(regions), -1, -1)
            score = regions.new_zeros(len(regions))
            if model.mode in ("text", "full"):
                score = score + imram_direction(model.memory["text"], words, regions, **asdict(model.matching))
            if model.mode in ("image", "full"):
                score = score + imram_direction(model.memory["image"], regions, words, **asdict(model.matching))
            parts.append(score)
        columns.append(torch.cat(parts))
    return torch.stack(columns, 1)
