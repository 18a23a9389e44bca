"""Requests made from the server's own description, right and wrong ones: never a 5xx."""

from contextlib import suppress

import hypothesis
import pytest

from mispair.serving.app import make_app
from tests.serving.sites import make_site


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    schemathesis = pytest.importorskip("schemathesis")
    app = make_app(make_site(tmp_path_factory.mktemp("site")))
    loaded = schemathesis.openapi.from_dict(app.openapi())
    loaded.app = app
    return loaded


def ask(schema, examples):
    """Every operation, so many valid and so many invalid requests each, always the same ones."""
    from schemathesis import GenerationMode

    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in GenerationMode:

            @hypothesis.seed(1)
            @hypothesis.settings(
                max_examples=examples, deadline=None, database=None, derandomize=False,
                suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
            )  # fmt: skip
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def one(case):
                nonlocal count
                response = case.call(base_url="http://127.0.0.1:8000")
                assert response.status_code < 500, (case, response.text)
                assert response.status_code != 421, "the request came to the server"
                count += 1

            with suppress(hypothesis.errors.Unsatisfiable):  # a route that takes nothing cannot be asked wrongly
                one()
    return count


def test_no_request_of_its_own_description_breaks_the_server(schema):
    assert ask(schema, 6) > 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_request_of_many_breaks_the_server(schema):
    assert ask(schema, 400) > 6_000
