"""A tiny trained run, once for all tests of the report."""

import pytest

from mispair.workflows.trained_run import load_run
from tests.workflows.report.samples import train


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    return train(
        tmp_path_factory.mktemp("report") / "tiny", "method.split.when_unimodal=posterior"
    )  # too short for two groups


@pytest.fixture(scope="session")
def data(trained):
    return load_run(trained).open_split("train")
