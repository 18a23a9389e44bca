"""`RobustContrastiveLoss` in sentence-transformers' own trainer: the label column carries the weight of each pair.

A table of word vectors stands in for a pretrained model. Three of five pairs are mismatched on purpose.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from mispair.losses import RobustContrastiveLoss

KINDS, PAIRS = 11, 275


class WeightedPairs(torch.nn.Module):
    """What the trainer calls: features of both columns, and the label column, here weights."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model, self.loss = model, RobustContrastiveLoss("infonce", temperature=0.1)

    def forward(self, sentence_features: Iterable[dict[str, torch.Tensor]], labels: torch.Tensor) -> torch.Tensor:
        first, second = (self.model(features)["sentence_embedding"] for features in sentence_features)
        return self.loss(first, second, weights=labels)


def tiny_model() -> SentenceTransformer:
    """Twice KINDS words, one vector each."""
    words = {f"{side}{kind}": 2 * kind + k for kind in range(KINDS) for k, side in enumerate(("a", "b"))}
    tokenizer = Tokenizer(models.WordLevel({**words, "?": len(words)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")


def train(weighted: bool) -> float:
    """Share of first words whose most similar second word is of their own kind, after training."""
    torch.manual_seed(0)
    kinds = [k % KINDS for k in range(PAIRS)]
    wrong = [k % 5 < 3 for k in range(PAIRS)]
    shown = [(kind + 3) % KINDS if bad else kind for kind, bad in zip(kinds, wrong, strict=True)]
    weights = [0.05 if bad and weighted else 1.0 for bad in wrong]
    columns = {"first": [f"a{k}" for k in kinds], "second": [f"b{k}" for k in shown], "label": weights}
    model = tiny_model()
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder, num_train_epochs=12, per_device_train_batch_size=24, learning_rate=0.05, use_cpu=True, seed=0,
            save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
        )  # fmt: skip
        data = Dataset.from_dict(columns)
        SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=WeightedPairs(model)).train()
    first, second = (model.encode([f"{side}{k}" for k in range(KINDS)], convert_to_tensor=True) for side in "ab")
    nearest = (torch.nn.functional.normalize(first, dim=1) @ torch.nn.functional.normalize(second, dim=1).T).argmax(1)
    return (nearest == torch.arange(KINDS)).float().mean().item()


if __name__ == "__main__":
    print(f"words that find their partner: {train(weighted=False):.0%} with every pair believed")
    print(f"words that find their partner: {train(weighted=True):.0%} with weights")
