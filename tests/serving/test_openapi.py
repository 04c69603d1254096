"""Whatever fits the description, and much that does not, is answered as described."""

import pytest
from hypothesis import HealthCheck, given, settings

from dpcml.serving.app import create_app
from dpcml.serving.settings import ServeSettings

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance  # noqa: E402

EXAMPLES = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def described(models):
    app = create_app(models["dpcml"], ServeSettings(log_requests=False))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_answers_are_as_described(described, mode):
    kind = schemathesis.GenerationMode[mode]
    seen = []
    for operation in (found.ok() for found in described.get_all_operations()):
        if mode == "NEGATIVE" and operation.path in (
            "/health",
            "/ready",
            "/metrics",
            "/api/v1/model",
            "/api/v1/reload",
        ):
            continue  # nothing can be wrong with them

        @EXAMPLES
        @given(case=operation.as_strategy(generation_mode=kind))
        def check(case):
            answer = case.call()
            # What fits the description may still ask for what the model cannot do, such as an unknown category.
            asked = answer.status_code == 422 and answer.json()["error"] in ("cannot", "nothing_left")
            # All that stands in an address is text: for a list of ids, false is the id "false".
            as_text = answer.status_code == 200 and "id" in (case.query or {})
            excluded = [*([positive_data_acceptance] if asked else []), *([negative_data_rejection] if as_text else [])]
            case.validate_response(answer, excluded_checks=excluded)

        check()
        seen.append(operation.path)
    assert "/api/v1/recommend/new" in seen


def test_every_path_has_an_example_and_a_summary(models):
    description = create_app(models["dpcml"]).openapi()
    for methods in description["paths"].values():
        for one in methods.values():
            assert one["summary"]
    bodies = ("RecommendRequest", "BatchRecommendRequest", "NewUserRecommendRequest", "NewUserRequest", "ErrorResponse")
    assert all(description["components"]["schemas"][name]["examples"] for name in bodies)
