"""Shared settings of the tests: one thread, one property-test profile, a cache of their own."""

import gc
import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.forks import Forks

# Wider instructions than most processors have round otherwise, and a training that is compared with what was committed
# takes another course from there: everywhere the same ones, in the processes that the tests start too.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

# Small tensors everywhere: two spinning thread pools cost more than they give.
torch.set_num_threads(1)

settings.register_profile("house", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


# Longest first: of several processes (--dist loadfile --no-loadscope-reorder) none is left with a long file at the end.
LONGEST = [
    "scale/test_ray.py", "runtime/test_distributed.py", "contract/test_methods.py", "runtime/test_accelerator.py",
    "fuzz/test_files.py", "fuzz/test_kills.py", "browser/test_serve.py", "browser/test_review.py",
    "browser/test_report.py", "test_examples.py",
    "experiments/test_runner.py", "cli/test_train.py", "trajectory/test_losses.py", "cli/test_audit.py",
    "workflows/test_joined_runs.py", "fuzz/test_full_disk.py", "workflows/test_onnx_towers.py",
    "workflows/test_tuning.py", "functional/test_mixture.py", "functional/test_transport.py", "runtime/test_trainer.py",
    "auditing/test_quick.py", "models/test_exact.py", "serving/test_openapi.py", "data/test_untrained.py",
    "scale/test_shards.py", "functional/test_judged_by_others.py", "encoders/test_basic.py",
    "experiments/test_run.py", "experiments/test_cell.py", "experiments/test_workers.py",
    "workflows/report/test_build.py",
]  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {f"tests/{name}": position for position, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is left in, or read from, the cache of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MISPAIR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def forks(_cache_of_the_tests: None) -> Iterator[Forks]:
    """`forks.run("train", ...)`: the command line in a process of its own, without paying for its imports each time."""
    with Forks() as process:
        yield process
