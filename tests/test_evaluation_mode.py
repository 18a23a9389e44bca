import pytest
import torch
from torch import nn

from mispair.evaluation_mode import evaluation_mode, training_mode


def test_every_submodule_gets_its_mode_back_whatever_happens():
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3)).train()
    net[1].eval()  # frozen statistics inside a network that trains
    seen = []

    def fail():
        with evaluation_mode(net, object()):
            seen.extend([net.training, net[0].training, torch.is_grad_enabled()])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [False, False, False]
    assert torch.is_grad_enabled()
    assert (net.training, net[0].training, net[1].training) == (True, True, False)
    net.eval()
    with training_mode(net):
        assert net[1].training
        assert torch.is_grad_enabled()
    assert not any(module.training for module in net.modules())
