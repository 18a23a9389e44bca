"""Runs and audits to make pages of."""

from dataclasses import replace

import pyarrow as pa

from mispair.auditing.verdicts import Verdicts
from mispair.workflows.train import train as train_run
from tests.report.samples import audit_of
from tests.synthetic import tiny_config


def train(folder, *sets):
    config = tiny_config("data.noise.rate=0.5", *sets)
    train_run(config, folder)
    return folder


def audit_beside(folder, data, run, captions=None, **facts):
    """An audit of the pairs of `data`."""
    table = data.table
    verdicts = audit_of(len(data), captions or [table.captions[k] for k in table.text_rows], run=run)
    about = {"path": "scenes", "split": "train", "config": facts.pop("config", None)}
    shown = pa.array([table.image_ids[row] for row in table.image_rows])
    named = verdicts.table.set_column(2, verdicts.table.schema.field("image_id"), shown)
    verdicts = Verdicts(named, verdicts.facts)
    replace(verdicts, facts=replace(verdicts.facts, data=about, **facts)).save(folder)
    return folder


def copied(source, target):
    """A run folder whose files can be changed."""
    for file in source.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    return target
