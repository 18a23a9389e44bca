"""How a sentence encoder turns token vectors into one: as its own files say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Pooling:
    """The mean of the tokens or the first one, of length 1 or as it is."""

    first: bool = False
    normalise: bool = False
    most_tokens: int | None = None

    def apply(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """tokens (B, R, H), mask (B, R) -> (B, H)."""
        from torch.nn.functional import normalize

        if self.first:
            pooled = tokens[:, 0]
        else:
            weight = mask[..., None].to(tokens.dtype)
            pooled = (tokens * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return normalize(pooled, dim=1) if self.normalise else pooled


def read_pooling(folder: Path, name: str) -> Pooling:
    """From `modules.json` and `1_Pooling/config.json`; the mean where a folder has neither."""
    modules = _read(folder / "modules.json", name)
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules] if isinstance(modules, list) else []
    unknown = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    pooling = _read(folder / "1_Pooling" / "config.json", name)
    pooling = pooling if isinstance(pooling, dict) else {}
    chosen = {key for key, value in pooling.items() if key.startswith("pooling_mode") and value not in (False, None)}
    modes = {key.removeprefix("pooling_mode_") for key in chosen if key != "pooling_mode"}
    modes |= {f"{pooling['pooling_mode']}_tokens" for key in chosen if key == "pooling_mode"}
    unknown += sorted(modes - {"mean_tokens", "cls_token", "cls_tokens"})
    if unknown or len(modes) > 1:
        how = ", ".join(unknown or sorted(modes))
        raise InputError(
            f"the encoder '{name}' pools its tokens in a way mispair does not know ({how}); choose one that takes "
            "their mean or the first"
        )
    about = _read(folder / "sentence_bert_config.json", name)
    most = about.get("max_seq_length") if isinstance(about, dict) else None
    return Pooling(bool(modes) and "mean_tokens" not in modes, "Normalize" in kinds, most)


def _read(path: Path, name: str) -> Any:
    try:
        return json.loads(read_ordinary(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"the encoder '{name}' is damaged: {path} is not JSON; download it again") from None
