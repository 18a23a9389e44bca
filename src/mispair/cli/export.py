"""`mispair export`: a trained model for other programs."""

from __future__ import annotations

from pathlib import Path

import typer


def export(
    run: Path = typer.Argument(..., help="A finished run folder."),
    to: str = typer.Option("safetensors", "--to", help="safetensors, onnx, transformers or sentence-transformers."),
    out: Path = typer.Option(Path("exported"), "-o", "--out", help="The new folder."),
    push: str | None = typer.Option(
        None, "--push", metavar="REPOSITORY", help="Print the command that uploads it; nothing is sent."
    ),
) -> None:
    """Write the best networks of a run with a model card, for programs that do not know mispair.

    safetensors: weights and how to build the networks. onnx: one graph per side (vse and dual, trained towers too),
    compared with the networks by onnxruntime before it is written. transformers, sentence-transformers: the towers of
    `train --tune lora` or `full`, merged, in the format they came in, compared with the run before they are written.

    Examples:

      mispair export runs/a --to onnx -o model

      mispair export runs/tuned --to transformers -o model

      mispair export runs/a -o model --push someone/model
    """
    import shlex

    from mispair.workflows.export import export as export_run

    export_run(run, out, to)
    typer.echo(f"Written to {out}: {', '.join(sorted(file.name for file in out.iterdir()))}")
    if push is not None:
        typer.echo(f"Nothing was sent. To upload it: {shlex.join(['hf', 'upload', push, str(out), '.'])}")
