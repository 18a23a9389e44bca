"""A step under torch.compile and in mixed precision: nothing breaks, and what needs its precision keeps it."""

import pytest
import torch

from mispair.functional.mixture import fit_mixture
from mispair.functional.transport import partial_transport
from mispair.methods import build_method, method_preset
from mispair.models import build_model, model_preset
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun, tiny_data


@pytest.mark.slow
@pytest.mark.timeout(3600)  # the compiler took 245 s where two cores had eight processes to run
@pytest.mark.filterwarnings("ignore")  # the compiler looks at things a step does not
@pytest.mark.parametrize("name", ["vse", "sgr", "saf", "imram"])
def test_a_compiled_network_takes_the_same_step(name):
    data = tiny_data(pictures=60)
    config = model_preset(name, "small").model_copy(update={"embed": 8, "word_dim": 4, "sim": 4, "dropout": 0.0})
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        plain = method_preset("plain").model_copy(update={"loss": "infonce"})
        method = build_method(plain, lambda: build_model(config, input_sizes(data)), 32)
        if compiled:
            for part in ("encode_images", "encode_texts", "similarity"):
                setattr(method.net, part, torch.compile(getattr(method.net, part), fullgraph=False, backend="eager"))
        run = RecordingRun(data)
        method.net.train()
        method.epoch(0, run)
        losses += run.losses
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_transport_keeps_its_precision_in_mixed_precision():
    torch.manual_seed(0)
    cost = torch.rand(12, 9)
    exact = partial_transport(cost, 0.3, 0.03).plan
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = partial_transport(cost, 0.3, 0.03).plan
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, exact)


@pytest.mark.parametrize("family", ["beta", "gaussian"])
def test_the_mixture_keeps_its_precision_in_mixed_precision(family):
    rng = torch.Generator().manual_seed(0)
    losses = torch.cat([torch.rand(300, generator=rng) * 0.4, 0.5 + torch.rand(200, generator=rng) * 0.5])
    exact = fit_mixture(losses, family)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = fit_mixture(losses, family)
        posterior = mixed.posterior_mismatched(losses)
    assert torch.equal(posterior, exact.posterior_mismatched(losses))
