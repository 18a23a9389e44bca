"""Fine-tune CLIP in a plain transformers loop on pairs that may be wrong: one weight per pair, one line of loss.

A tiny CLIP with random weights stands in for `CLIPModel.from_pretrained(...)`, pictures of one colour for photographs.
A third of the captions belong to another picture; the weights are what `mispair fix --action weight` writes.
"""

from __future__ import annotations

import torch
from transformers import CLIPConfig, CLIPModel

from mispair.losses import RobustContrastiveLoss

PAIRS, KINDS, BATCH, STEPS = 96, 8, 32, 60
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def tiny_clip() -> CLIPModel:
    """The architecture of CLIP at a thousandth of its size."""
    vision = {**SMALL, "image_size": 16, "patch_size": 8}
    text = {**SMALL, "vocab_size": 20, "max_position_embeddings": 4, "bos_token_id": 18, "eos_token_id": 19}
    return CLIPModel(CLIPConfig(vision_config=vision, text_config=text, projection_dim=16))


def make_pairs(rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures (PAIRS, 3, 16, 16), token ids (PAIRS, 3), and which pairs are mismatched (PAIRS,)."""
    kinds = torch.arange(PAIRS) % KINDS
    colours = torch.rand(KINDS, 3, generator=rng)
    pictures = colours[kinds][:, :, None, None] + 0.05 * torch.randn(PAIRS, 3, 16, 16, generator=rng)
    mismatched = torch.arange(PAIRS) % 3 == 0
    said = torch.where(mismatched, (kinds + 3) % KINDS, kinds)
    tokens = torch.stack([torch.full((PAIRS,), 18), said, torch.full((PAIRS,), 19)], 1)
    return pictures, tokens, mismatched


def train(weighted: bool) -> float:
    """Share of pictures whose most similar caption is of their own colour, after training."""
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    pictures, tokens, mismatched = make_pairs(rng)
    weights = torch.where(mismatched, 0.05, 0.95) if weighted else torch.ones(PAIRS)
    clip = tiny_clip()
    loss = RobustContrastiveLoss("infonce", temperature=0.07, learn_temperature=True)
    optimizer = torch.optim.AdamW([*clip.parameters(), *loss.parameters()], 2e-3)
    for _ in range(STEPS):
        ids = torch.randperm(PAIRS, generator=rng)[:BATCH]
        seen = clip(input_ids=tokens[ids], pixel_values=pictures[ids])
        total = loss(seen.image_embeds, seen.text_embeds, weights=weights[ids])
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    every = torch.stack([torch.full((KINDS,), 18), torch.arange(KINDS), torch.full((KINDS,), 19)], 1)
    with torch.no_grad():
        scores = clip.eval()(input_ids=every, pixel_values=pictures).logits_per_image
    return (scores.argmax(1) == torch.arange(PAIRS) % KINDS).float().mean().item()


if __name__ == "__main__":
    print(f"pictures that find their caption: {train(weighted=False):.0%} with every pair believed")
    print(f"pictures that find their caption: {train(weighted=True):.0%} with weights")
