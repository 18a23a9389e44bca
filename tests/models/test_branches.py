"""Encoders and pooling against plain torch, and the hand-sized cases."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mispair.half_precision import bfloat16
from mispair.models.branches import BiGRU, run_gru, turn_round
from mispair.models.kernels.caption_groups import by_length
from mispair.models.kernels.gru import run_packed
from mispair.models.kernels.unit_length import l2
from mispair.models.layers import masked_mean
from mispair.models.pooling import FeatureNorm, GeneralizedPool
from mispair.models.selfattention import SlotNorm, TextAttention


def _mask(lengths: list[int], width: int) -> torch.Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def test_turning_round_by_hand() -> None:
    x = torch.tensor([[[1.0], [2.0], [3.0], [9.0]], [[5.0], [9.0], [9.0], [9.0]]])
    turned = turn_round(x, _mask([3, 1], 4))
    assert turned[..., 0].tolist() == [[3, 2, 1, 9], [5, 9, 9, 9]]


def test_bigru_is_the_packed_bidirectional_gru_averaged() -> None:
    ours, theirs = BiGRU(5, 7).double(), nn.GRU(5, 7, batch_first=True, bidirectional=True).double()
    for mine, suffix in ((ours.ahead, ""), (ours.back, "_reverse")):
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(mine, f"{kind}_l0").data = getattr(theirs, f"{kind}_l0{suffix}").data
    x, lengths = torch.randn(4, 6, 5, dtype=torch.float64), [6, 1, 3, 4]
    mask = _mask(lengths, 6)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    states, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    expected = (states[..., :7] + states[..., 7:]) / 2
    torch.testing.assert_close(ours(x, mask)[mask], expected[mask])


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("lengths", [[3, 6, 1, 4, 4], [1], [2, 2, 2]])
def test_states_and_gradients_of_the_packed_gru_are_those_of_torch(lengths: list[int], backwards: bool) -> None:
    torch.manual_seed(0)
    width = max(lengths)
    gru, x = nn.GRU(3, 4, batch_first=True).double(), torch.randn(len(lengths), width, 3, dtype=torch.float64)
    mask, weight = _mask(lengths, width), torch.randn(len(lengths), width, 4, dtype=torch.float64)
    leaves = [x.requires_grad_(), *gru.parameters()]
    one_by_one = torch.zeros_like(weight)
    for i, length in enumerate(lengths):
        words = x[i : i + 1, :length].flip(1) if backwards else x[i : i + 1, :length]
        states = gru(words)[0][0]
        one_by_one = one_by_one.index_put(
            (torch.tensor(i), torch.arange(length)), states.flip(0) if backwards else states
        )
    packed = run_packed(gru, x, mask, backwards)
    torch.testing.assert_close(packed, one_by_one)
    found, expected = (torch.autograd.grad((out * weight).sum(), leaves) for out in (packed, one_by_one))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_gru_over_padding_sees_the_same_words(backwards: bool) -> None:
    """What an accelerator runs: padding after the words cannot change them."""
    gru, x, mask = nn.GRU(3, 4, batch_first=True), torch.randn(3, 5, 3), _mask([5, 2, 1], 5)
    with bfloat16("cpu"):
        padded = run_gru(gru, x, mask, backwards)
    torch.testing.assert_close(padded[mask].float(), run_packed(gru, x, mask, backwards)[mask], atol=0.02, rtol=0.02)


def test_slot_norm_is_batchnorm_over_slots_when_nothing_is_masked() -> None:
    ours, theirs = SlotNorm(4).double(), nn.BatchNorm1d(4).double()
    for _ in range(3):
        x = torch.randn(5, 4, 6, dtype=torch.float64) * 2 + 1
        torch.testing.assert_close(ours(x, torch.ones(5, 4, dtype=torch.bool)), theirs(x))
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(x, torch.ones(5, 4, dtype=torch.bool)), theirs(x))


def test_slot_norm_leaves_alone_what_it_did_not_see() -> None:
    norm, x = SlotNorm(5), torch.randn(3, 4, 6)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[:, 2] = False
    out = norm(x, mask)
    assert norm.running_mean[2] == 0
    assert norm.running_mean[4] == 0  # a slot the batch does not have
    assert norm.running_var[2] == 1
    assert norm.running_mean[0] != 0
    alone = norm.eval()(x, mask)
    assert torch.isfinite(out).all()
    assert torch.isfinite(alone).all()


def test_slot_norm_of_a_slot_uses_the_images_that_have_it() -> None:
    norm, x = SlotNorm(2).double(), torch.randn(4, 2, 3, dtype=torch.float64)
    mask = torch.tensor([[True, True], [True, False], [True, True], [True, False]])
    own = x[[0, 2], 1]
    expected = (own - own.mean()) / (own.var(correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(norm(x, mask)[[0, 2], 1], expected)


def test_slot_norm_with_one_masked_region_takes_the_masked_way_to_nearly_the_same() -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(4, 3, 5, dtype=torch.float64), torch.ones(4, 3, dtype=torch.bool)
    whole, masked = SlotNorm(3).double(), SlotNorm(3).double()
    expected = whole(x, mask)
    mask[0, 2] = False
    found = masked(x, mask)
    torch.testing.assert_close(found[:, :2], expected[:, :2])
    torch.testing.assert_close(masked.running_var[:2], whole.running_var[:2])
    assert int(masked.num_batches_tracked) == int(whole.num_batches_tracked) == 1
    assert not torch.allclose(found[:, 2], expected[:, 2])


def test_packed_and_padded_text_attention_agree() -> None:
    attention = TextAttention(6, 0.0).double()
    values, mask = torch.randn(3, 5, 6, dtype=torch.float64), _mask([5, 1, 3], 5)
    torch.testing.assert_close(attention.packed(values, mask), attention.padded(values, mask))


def test_feature_norm_is_batchnorm_of_the_real_rows() -> None:
    ours, theirs = FeatureNorm(3).double(), nn.BatchNorm1d(3).double()
    x, mask = torch.randn(4, 5, 3, dtype=torch.float64), _mask([5, 1, 3, 2], 5)
    torch.testing.assert_close(ours(x, mask)[mask], theirs(x[mask]))
    torch.testing.assert_close(ours.running_var, theirs.running_var)


def test_generalized_pooling_by_hand() -> None:
    pool = GeneralizedPool().double()
    x, mask = torch.randn(3, 6, 4, dtype=torch.float64), _mask([6, 2, 1], 6)
    out = pool(x, mask)
    for i, size in enumerate((6, 2, 1)):
        theta = pool.weights(size)[size - 1]
        assert theta.sum().item() == pytest.approx(1)
        torch.testing.assert_close(out[i], theta @ x[i, :size].sort(0, descending=True).values)


def test_generalized_pooling_with_equal_weights_is_the_mean_and_ignores_order() -> None:
    pool = GeneralizedPool()
    nn.init.zeros_(pool.weigh.weight)
    x, mask = torch.randn(2, 5, 3), _mask([5, 3], 5)
    torch.testing.assert_close(pool(x, mask), masked_mean(x, mask))


def test_l2_adds_its_floor_to_the_norm() -> None:
    assert l2(torch.zeros(2, 3)).tolist() == [[0.0] * 3] * 2
    torch.testing.assert_close(
        l2(torch.tensor([3e-8, 4e-8], dtype=torch.float64)), torch.tensor([3 / 6, 4 / 6], dtype=torch.float64)
    )


def test_groups_hold_every_caption_once_at_its_length() -> None:
    lengths = [3, 9, 1, 5, 5, 3, 12, 3, 3]
    groups = by_length(_mask(lengths, 12), words=9)
    assert sorted(torch.cat([g.columns for g in groups]).tolist()) == list(range(9))
    for group in groups:
        assert {lengths[c] for c in group.columns.tolist()} == {group.length}
        assert len(group.columns) <= max(1, 9 // group.length)
