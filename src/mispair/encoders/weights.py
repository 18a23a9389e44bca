"""Where the weights of a hub model lie: a folder given by name, the hub's cache, or the hub.

Only data is taken: JSON, tokenizer files and safetensors. A repository with pickled weights or code of its own is
refused, in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary

REMEDY = "pip install 'mispair[hub]'"
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)
_DATA = (
    "config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json", "merges.txt",
    "special_tokens_map.json", "added_tokens.json", *_TOKENIZERS, "modules.json", "sentence_bert_config.json",
    "1_Pooling/config.json",
    "model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors",
)  # fmt: skip
_MOST_JSON = 256 << 20  # bytes; a tokenizer of many languages has 35 million
PICTURE_FAMILIES = ("clip", "siglip", "siglip2", "dinov2", "dinov2_with_registers")
_TEXT_FAMILIES = ("clip", "siglip", "siglip2", "bert", "distilbert", "mpnet", "roberta", "xlm-roberta")
FAMILIES = tuple(dict.fromkeys(PICTURE_FAMILIES + _TEXT_FAMILIES))


@dataclass(frozen=True, slots=True)
class Weights:
    """A complete folder of data files, and the commit they come from ("" for a folder of one's own)."""

    folder: Path
    revision: str
    family: str  # the configuration's model_type

    def fingerprint(self) -> str:
        """sha256 of every file that counts, by name."""
        digest = hashlib.sha256()
        for file in sorted(_present(self.folder)):
            digest.update(f"{file}\0".encode())
            with open(self.folder / file, "rb") as stream:
                while block := stream.read(1 << 22):
                    digest.update(block)
        return digest.hexdigest()


def find_weights(name: str, *, download: bool = True) -> Weights:
    """The weights of `name`: a folder, or a hub id, with the commit, branch or tag after an "@".

    The hub is asked only for what its cache on this machine lacks, so a revision, once here, stays.
    """
    if os.path.isdir(name):
        return _checked(Path(name), name, "")
    repository, _, revision = name.partition("@")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        raise InputError(f"the encoder '{name}' needs the extra 'hub', so try: {REMEDY}") from None
    wanted: dict[str, Any] = {"revision": revision or None, "allow_patterns": list(_DATA)}
    try:
        folder = Path(snapshot_download(repository, local_files_only=True, **wanted))
        missing = _missing(folder)
    except HFValidationError:
        raise InputError(f"'{name}' is neither a folder nor the id of a model, such as google/siglip2-base") from None
    except OSError:  # what the hub's library raises where nothing is here yet
        folder, missing = None, ["config.json", "model.safetensors"]
    if folder is None or (missing and download):
        if not download:
            raise InputError(f"the encoder '{name}' is not on this machine (missing: {', '.join(missing)})")
        folder = _download(name, repository, wanted, missing)
    return _checked(folder, name, folder.name)


def _download(name: str, repository: str, wanted: dict[str, Any], missing: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return Path(snapshot_download(repository, **wanted))
    except GatedRepoError:
        raise InputError(f"{repository} wants you to accept its terms on the hub first, then: hf auth login") from None
    except RepositoryNotFoundError:
        raise InputError(f"the hub has no model '{repository}' that you may read; check the name") from None
    except RevisionNotFoundError:
        raise InputError(
            f"{repository} has no revision '{wanted['revision']}'; check the commit, branch or tag"
        ) from None
    except Exception as error:  # noqa: BLE001  no connection, in whatever way the transport says it
        at = f" --revision {wanted['revision']}" if wanted["revision"] else ""
        raise InputError(
            f"the encoder '{name}' is not on this machine (missing: {', '.join(missing)}) and the hub cannot be "
            f"reached ({type(error).__name__}); where there is a connection run 'hf download {repository}{at} "
            "--local-dir FOLDER', bring the folder here and give its path as the encoder"
        ) from None


def _checked(folder: Path, name: str, revision: str) -> Weights:
    """Refuse what cannot be used, before anything heavy is imported."""
    config = _json(folder / "config.json", name)
    for file in ("config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json"):
        if (folder / file).is_file() and "auto_map" in _json(folder / file, name):
            raise InputError(
                f"the encoder '{name}' wants to run its own code (auto_map in {file}), which mispair never does; "
                "choose a model that transformers knows by itself"
            )
    for file in _present(folder):
        if file.endswith(".json"):
            _json(folder / file, name)  # the library would say of a damaged one what its parser says
    family = str(config.get("model_type", ""))
    if family not in FAMILIES:
        raise InputError(
            f"the encoder '{name}' is a model of type '{family}'; the types mispair can use are {', '.join(FAMILIES)}"
        )
    missing = _missing(folder)
    if missing == ["model.safetensors"]:
        raise InputError(
            f"the encoder '{name}' has no model.safetensors in {folder}, and pickled weights are not read since they "
            "can hold code; put the file there, or save the model anew with transformers where you trust it"
        )
    if missing:
        raise InputError(f"the encoder '{name}' is incomplete: put {', '.join(missing)} into {folder}")
    return Weights(folder, revision, family)


def _missing(folder: Path) -> list[str]:
    """The files without which a model cannot be used."""
    there = _present(folder)
    missing = [] if "config.json" in there else ["config.json"]
    if "model.safetensors.index.json" in there:
        shards = set(_json(folder / "model.safetensors.index.json", str(folder)).get("weight_map", {}).values())
        missing += sorted(str(shard) for shard in shards if shard not in there)
    elif "model.safetensors" not in there:
        missing.append("model.safetensors")
    family = _json(folder / "config.json", str(folder)).get("model_type") if "config.json" in there else None
    if family in PICTURE_FAMILIES and not {"preprocessor_config.json", "processor_config.json"} & set(there):
        missing.append("preprocessor_config.json")
    if family in _TEXT_FAMILIES and not set(_TOKENIZERS) & set(there):
        missing.append("tokenizer.json")
    return missing


def _present(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for pattern in _DATA for path in folder.glob(pattern) if path.is_file()]


def _json(path: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads(read_ordinary(path, _MOST_JSON))
    except FileNotFoundError:
        raise InputError(f"the encoder '{name}' is incomplete: put {path.name} into {path.parent}") from None
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict | list):
        raise InputError(f"the encoder '{name}' is damaged: {path} is not JSON; download it again")
    return content if isinstance(content, dict) else {"list": content}
