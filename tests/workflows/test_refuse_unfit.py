"""What cannot be trained is refused before anything is allocated."""

from __future__ import annotations

import pytest
import torch

from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.workflows.assemble import input_sizes
from mispair.workflows.refuse_unfit import refuse_unfit
from tests.synthetic import tiny_data


@pytest.mark.parametrize(
    ("after", "warmup", "said"),
    [(6, 5, "leaves nothing of train.epochs=6"), (3, 3, "warmup_epochs=3 ends before the full model has learned")],
)
def test_means_for_so_long_that_the_full_model_has_no_time(after, warmup, said):
    data = tiny_data(rate=0.5, pictures=30)
    method = {"name": "l2rm", "warmup_epochs": warmup}

    def asked(**model):
        config = RunConfig.model_validate({"model": {"name": "sgr", **model}, "train": {"epochs": 6}, "method": method})
        refuse_unfit(config, data, input_sizes(data), torch.device("cpu"))

    with pytest.raises(InputError, match=said):
        asked(shortlist=4, shortlist_after=after)
    asked(shortlist=4, shortlist_after=2)
    asked(shortlist_after=after)
