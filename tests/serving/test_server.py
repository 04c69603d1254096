"""Health, readiness, metrics, and who may ask for what."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dpcml.serving.settings import ServeSettings, read_token
from dpcml.utils.errors import DataError

TOKEN = "a-token-for-the-tests"


def samples(text):
    """Return the value of each metric by its name and labels, as a Prometheus server reads them."""
    families = text_string_to_metric_families(text)
    return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}


@pytest.fixture(scope="module")
def guarded(models, serve):
    return serve(models["itemknn"], ServeSettings(token=TOKEN))


def test_it_lives_and_is_ready(client):
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready", "workers": 1, "workers_wanted": 1}


def test_requests_are_counted(models, serve):
    client = serve(models["itemknn"])
    for user in (1, 2, 10**9):
        client.post("/api/v1/recommend", json={"user": user, "on_unknown": "error"})
    client.get("/no/such/path")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    found = samples(answer.text)
    path = ("path", "/api/v1/recommend")
    assert found["dpcml_requests_total", path, ("status", "200")] == 2
    assert found["dpcml_requests_total", path, ("status", "404")] == 1
    assert found["dpcml_requests_total", ("path", "other"), ("status", "404")] == 1
    assert found["dpcml_request_seconds_bucket", ("le", "+Inf"), path] == 3
    assert found["dpcml_request_seconds_count", path] == 3
    assert found["dpcml_request_seconds_sum", path] > 0
    assert found["dpcml_requests_in_flight",] == 1, "the request for the metrics itself"
    assert found["dpcml_workers",] == found["dpcml_workers_wanted",] == 1
    assert found["dpcml_reloads_total", ("outcome", "refused")] == 0
    info = next(dict(labels) for name, *labels in found if name == "dpcml_model_info")
    assert (info["name"], info["model"]) == ("main", "itemknn")
    assert info["fingerprint"] == info["mark"] == client.get("/api/v1/model").json()["models"][0]["fingerprint"]


def test_an_unknown_path_is_told_so(client):
    answer = client.get("/api/v1/nothing")
    assert (answer.status_code, answer.json()["error"]) == (404, "no_such_path")
    assert client.get("/api/v1/recommend").status_code == 405


def test_answers_forbid_what_the_page_does_not_need(client):
    headers = client.get("/").headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer é"])
def test_without_the_token_nothing_is_told(guarded, header):
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    for method, path in [("GET", "/api/v1/model"), ("POST", "/api/v1/recommend"), ("POST", "/api/v1/reload"),
                         ("GET", "/metrics")]:  # fmt: skip
        answer = guarded.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_with_the_token_all_is_told(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/v1/model", headers=headers).status_code == 200
    assert guarded.get("/metrics", headers=headers).status_code == 200


def test_health_and_the_page_need_no_token(guarded):
    assert guarded.get("/health").status_code == 200
    assert guarded.get("/").status_code == 200


@pytest.mark.parametrize("text", ["", "short", "with spaces in it, long", "ééééééééééééééééééé"])
def test_a_bad_token_file_is_refused(tmp_path, text):
    (tmp_path / "token").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="holds no token"):
        read_token(tmp_path / "token")


def test_a_missing_token_file_is_told(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_token(tmp_path / "none")


def test_the_token_is_not_shown():
    assert TOKEN not in repr(ServeSettings(token=TOKEN))
