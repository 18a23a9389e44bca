"""What cannot be trained is refused before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.models import InputSizes
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from mispair.workflows.refuse_unfit import count_weights, refuse_oversized, refuse_unfit
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


@pytest.mark.parametrize(
    "over",
    [{"embed": 10**9}, {"word_dim": 10**9}, {"image_width": 10**12}, {"vocabulary_size": 10**11}, {"embed": 10**6}],
    ids=str,
)
def test_a_run_whose_files_name_other_sizes_is_refused_before_they_are_allocated(over):
    sizes = InputSizes(image_width=96, vocabulary_size=100)
    model = VSEConfig(embed=32, word_dim=16)
    held = count_weights(RunConfig(model=model), sizes)
    refuse_oversized(RunConfig(model=model), sizes, held, Path("model.safetensors"))
    model = model.model_copy(update={name: value for name, value in over.items() if name in VSEConfig.model_fields})
    sizes = sizes.model_copy(update={name: value for name, value in over.items() if name in InputSizes.model_fields})
    with pytest.raises(
        InputError, match=rf"model.safetensors holds {held:,} weights.* has ([0-9,]+|far more); train again"
    ):
        refuse_oversized(RunConfig(model=model), sizes, held, Path("model.safetensors"))


def test_many_words_are_no_damage():
    config, sizes = RunConfig(model=VSEConfig(embed=32)), InputSizes(image_width=96, vocabulary_size=60_000)
    refuse_oversized(config, sizes, count_weights(config, sizes), Path("model.safetensors"))
