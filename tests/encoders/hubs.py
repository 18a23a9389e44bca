"""Folders of weights as a hub has them: each architecture, tiny, with random weights and a tokenizer made here."""

from __future__ import annotations

import json
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

WORDS = ["a", "the", "dog", "cat", "runs", "sleeps", "on", "beach", "sofa", "red", "blue", "and", "two", "with", "ball"]
_VISION = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4,
}  # fmt: skip
_TEXT = {
    "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 300,
    "max_position_embeddings": 16,
}  # fmt: skip


def clip(folder: Path) -> None:
    config = transformers.CLIPConfig(
        vision_config={**_VISION, "image_size": 32},
        text_config={**_TEXT, "bos_token_id": 298, "eos_token_id": 299, "pad_token_id": 299},
        projection_dim=8,
    )
    _save(transformers.CLIPModel(config), folder)
    size = {"shortest_edge": 32}
    transformers.CLIPImageProcessorPil(size=size, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,"
    vocabulary = {piece: k for k, piece in enumerate([*letters, *(f"{letter}</w>" for letter in letters)])}
    vocabulary |= {"<|startoftext|>": 298, "<|endoftext|>": 299}
    transformers.CLIPTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)


def siglip(folder: Path) -> None:
    config = transformers.SiglipConfig(
        vision_config={**_VISION, "image_size": 32}, text_config={**_TEXT, "projection_size": 16, "vocab_size": 60}
    )
    _save(transformers.SiglipModel(config), folder)
    transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    sentences = folder / "sentences.txt"
    sentences.write_text("\n".join(" ".join(WORDS[k:] + WORDS[:k]) for k in range(len(WORDS))))
    sentencepiece.SentencePieceTrainer.train(
        input=str(sentences), model_prefix=str(folder / "spiece"), vocab_size=60, pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    transformers.SiglipTokenizer(str(folder / "spiece.model")).save_pretrained(folder)


def siglip2(folder: Path) -> None:
    config = transformers.Siglip2Config(
        vision_config={**_VISION, "num_patches": 64}, text_config={**_TEXT, "projection_size": 16}
    )
    _save(transformers.Siglip2Model(config), folder)
    transformers.Siglip2ImageProcessorPil(patch_size=4, max_num_patches=64).save_pretrained(folder)
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    pieces = [*special, *(f"<0x{k:02X}>" for k in range(256)), "▁", *"abcdefgh"]
    transformers.Siglip2Tokenizer(vocab={p: k for k, p in enumerate(pieces)}, merges=[]).save_pretrained(folder)


def dinov2(folder: Path) -> None:
    _save(transformers.Dinov2Model(transformers.Dinov2Config(**_VISION, image_size=40)), folder)
    _bit_processor(folder)


def dinov2_with_registers(folder: Path) -> None:
    config = transformers.Dinov2WithRegistersConfig(**_VISION, image_size=40, num_register_tokens=4)
    _save(transformers.Dinov2WithRegistersModel(config), folder)
    _bit_processor(folder)


def bert(folder: Path) -> None:
    _save(transformers.BertModel(transformers.BertConfig(**_TEXT)), folder)
    tokenizer = Tokenizer(models.WordLevel({w: k for k, w in enumerate(["[PAD]", "[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.save_pretrained(folder)


def as_sentence_encoder(folder: Path, *, mode: str = "mean_tokens", normalise: bool = True, most: int = 7) -> None:
    """What sentence-transformers puts beside the weights."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
    modules = [
        {"idx": k, "name": str(k), "type": f"sentence_transformers.models.{kind}"} for k, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    flags = {f"pooling_mode_{name}": name == mode for name in ("cls_token", "mean_tokens", "max_tokens")}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 12, **flags}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": most}))


def _bit_processor(folder: Path) -> None:
    transformers.BitImageProcessorPil(
        size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)


def _save(model: transformers.PreTrainedModel, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3, generator=generator)
    model.save_pretrained(folder)
