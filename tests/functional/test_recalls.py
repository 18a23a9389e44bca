"""Retrieval metrics against the definition."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mispair.functional.recalls import ranks, retrieval_metrics
from tests import oracles


class TestRanks:
    def test_by_hand(self):
        # Image 0 owns captions 0, 1; image 1 owns 2, 3.
        scores = torch.tensor([[0.9, 0.1, 0.8, 0.2], [0.5, 0.4, 0.3, 0.45]])
        metrics = retrieval_metrics(scores, 2)
        assert metrics["i2t_r1"] == 50  # image 1's best caption (0.45) is beaten by 0.5
        assert metrics["t2i_r1"] == 50  # captions 0 and 3 find their image, 1 and 2 do not
        assert metrics["i2t_medr"] == 1
        assert metrics["t2i_meanr"] == 1.5
        assert metrics["rsum"] == 50 + 100 + 100 + 50 + 100 + 100
        assert metrics["collapsed"] == 0

    @given(
        n=st.sampled_from([1, 2, 3, 7, 11]),
        c=st.sampled_from([1, 2, 5]),
        seed=st.integers(0, 1000),
        levels=st.sampled_from([2, 5, 1000]),
    )
    def test_equal_the_definition_ties_included(self, n, c, seed, levels):
        scores = torch.from_numpy(np.random.default_rng(seed).integers(0, levels, (n, n * c)).astype(np.float32))
        owner = torch.arange(n * c) // c
        i2t, t2i = ranks(scores, owner)
        true_i2t, true_t2i = oracles.ranks(scores.numpy(), owner.numpy())
        assert (i2t.numpy() == true_i2t).all()
        assert (t2i.numpy() == true_t2i).all()

    @given(seed=st.integers(0, 1000))
    def test_variable_numbers_of_captions(self, seed):
        rng = np.random.default_rng(seed)
        owner = rng.integers(0, 7, 19)
        scores = torch.from_numpy(rng.integers(0, 6, (7, 19)).astype(np.float64))
        i2t, t2i = ranks(scores, torch.from_numpy(owner))
        true_i2t, true_t2i = oracles.ranks(scores.numpy(), owner)
        assert (i2t.numpy() == true_i2t).all()
        assert (t2i.numpy() == true_t2i).all()
        metrics = retrieval_metrics(scores, owner)
        assert metrics["i2t_r5"] == pytest.approx(100 * (true_i2t < 5).mean())
        assert metrics["t2i_meanr"] == pytest.approx(true_t2i.mean() + 1)
        assert metrics["t2i_medr"] == math.floor(np.median(true_t2i)) + 1

    @given(seed=st.integers(0, 1000))
    def test_invariant_under_a_monotone_map(self, seed):
        scores = torch.from_numpy(np.random.default_rng(seed).standard_normal((11, 33)))
        assert retrieval_metrics(scores, 3) == retrieval_metrics((scores / 3).exp() * 7 - 2, 3)

    def test_perfect_and_constant(self):
        owner = torch.arange(55) // 5
        perfect = (owner == torch.arange(11)[:, None]).float()
        assert retrieval_metrics(perfect, 5)["rsum"] == 600
        constant = retrieval_metrics(torch.full((11, 55), 0.3), 5)
        assert constant["rsum"] == 0  # ties count against the model; 44 wrong captions are as good as the right one
        assert constant["collapsed"] == 1
        assert constant["i2t_medr"] == 51
        assert constant["t2i_medr"] == 11

    def test_equals_the_argsort_loop_without_ties(self):
        scores = np.random.default_rng(0).standard_normal((37, 185)).astype(np.float32)
        metrics = retrieval_metrics(scores, 5)
        ours = [metrics[f"{d}_r{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10)]
        assert np.allclose([*ours, metrics["rsum"]], oracles.argsort_metrics(scores, 5))

    def test_folds_are_the_mean_of_folds(self):
        scores = torch.from_numpy(np.random.default_rng(0).standard_normal((35, 70)))
        metrics = retrieval_metrics(scores, 2, folds=5)
        each = [retrieval_metrics(scores[7 * f : 7 * f + 7, 14 * f : 14 * f + 14], 2) for f in range(5)]
        for key, value in metrics.items():
            assert value == pytest.approx(np.mean([e[key] for e in each]))
        assert metrics["rsum"] == pytest.approx(sum(metrics[f"{d}_r{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10)))

    def test_folds_by_owner(self):
        scores = torch.from_numpy(np.random.default_rng(0).standard_normal((10, 20)))
        shuffled = torch.randperm(20, generator=torch.Generator().manual_seed(0))
        owner = torch.arange(20) // 2
        assert retrieval_metrics(scores[:, shuffled], owner[shuffled], folds=5) == retrieval_metrics(scores, 2, folds=5)

    @pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="reads the memory of a process as Linux tells it"
    )
    def test_coco_5k_stays_under_two_gigabytes(self):
        """By VmHWM, since getrusage counts what the process was that started this one."""
        code = (
            "import torch\n"
            "from mispair.functional.recalls import retrieval_metrics\n"
            "torch.set_num_threads(1)\n"
            "s = torch.rand(5000, 25000)\n"
            "m = retrieval_metrics(s, 5)\n"
            "assert 0 < m['rsum'] < 20, m\n"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert int(done.stdout) * 1024 < 2 * 2**30

    @pytest.mark.parametrize(
        ("scores", "captions", "folds", "message"),
        [
            (torch.rand(4, 9), 2, None, "needs 4 x 2 = 8 captions for 4 images, got 9"),
            (torch.rand(4, 8), 0, None, "captions_per_image=0"),
            (torch.rand(4), 1, None, r"\(images, captions\), got shape \(4,\)"),
            (torch.rand(0, 4), 1, None, "got shape"),
            (torch.full((4, 4), math.nan), 1, None, "finite"),
            (torch.rand(4, 8), 2, 3, "folds must divide the 4 images into equal galleries, got 3"),
            (torch.rand(4, 3), [0, 1, 4], None, "caption 2 names image 4.*images are 0 to 3"),
            (torch.rand(4, 3), [0, 1], None, "must be 3 integers"),
            (torch.rand(4, 3), [0.0, 1.0, 2.0], None, "must be 3 integers"),
            (torch.rand(4, 2), [0, 0], 2, "images 2 to 3 own no caption"),
        ],
    )
    def test_bad_input_gets_one_sentence(self, scores, captions, folds, message):
        with pytest.raises(ValueError, match=message):
            retrieval_metrics(scores, captions, folds)
