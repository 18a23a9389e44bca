"""What the TARGET of `mispair audit` is: a run, or data, and then whether an encoder can judge it as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mispair.cli.options import data as data_options
from mispair.errors import InputError


def is_pictures(files: dict[str, Any], raw: bool = False) -> bool:
    """Whether TARGET is data with pictures, or what an encoder made of them: then the encoder can judge it as it is.

    `raw`: pictures alone.
    """
    from mispair.data.files.tar_names import names_nothing
    from mispair.data.readers.dispatch import READERS
    from mispair.runtime.run_folder import RunFolder
    from mispair.workflows.embed import needs_encoding
    from mispair.workflows.embedded_before import embedded_before

    path = Path(files["path"])
    config = data_options.data_config(**files)
    if path.suffix.lower() == ".npy":  # an array is no picture, and alone it is one side of the pairs
        return False
    if (
        RunFolder(path).begun
        or names_nothing(files["path"])
        or not any(reader.recognises(config) for reader in READERS)
    ):
        return False
    return needs_encoding(config) or (not raw and embedded_before(config, texts=True).joint is not None)


def refuse_data(target: str) -> None:
    """Data where a run should be: the sentence says how to judge it. An audit's table is no data."""
    from mispair.auditing.audit_folder import AuditFolder
    from mispair.data.config import DataConfig
    from mispair.data.readers.dispatch import READERS
    from mispair.runtime.run_folder import RunFolder
    from mispair.shell_word import in_shell
    from mispair.workflows.embed import neither_pictures_nor_features, open_raw

    if RunFolder(Path(target)).begun:
        return
    if AuditFolder(Path(target)).begun:
        RunFolder(Path(target)).refuse_unless_begun()
    config = DataConfig(path=target)
    if any(reader.recognises(config) for reader in READERS):
        if not target.lower().endswith(".npy") and neither_pictures_nor_features(config):
            try:
                open_raw(config)
            except InputError as error:
                with_features = f"mispair audit {in_shell(target)} --train --features images.npy"
                raise InputError(f"{error}; or give features of them: {with_features}") from None
        raise InputError(
            f"{target} is data, not a run: train on it and judge it with:"
            f" mispair audit {in_shell(target)} --train; or judge it with a run you have:"
            f" mispair audit RUN --data {in_shell(target)}"
        )
