import pytest

pytest.importorskip("fastapi")
from benchmarks.serving import bench_serving, send_load
from dpcml import ItemKNN, save
from dpcml.utils.errors import ParameterError


def test_a_server_is_measured_and_answers_all(blocks, tmp_path):
    folder = save(ItemKNN().fit(blocks), tmp_path / "knn")
    with pytest.raises(ParameterError, match="connections=1000: must be above 0 and at most 256"):
        send_load("http://127.0.0.1:1/", [{}], connections=1000, requests=1, seconds=1)
    found = bench_serving(folder, connections=(1, 4), requests=30, seconds=20)
    one, four, quarter, half = found["asked"]["recommend"]
    assert (one["at_once"], four["at_once"], quarter["at_once"], half["at_once"]) == (1, 4, 4, 4)
    assert one["rate"] is four["rate"] is None
    assert quarter["rate"] == pytest.approx(four["requests_per_second"] / 4)
    assert half["rate"] == pytest.approx(four["requests_per_second"] / 2)
    assert half["requests_per_second"] < 1.1 * half["rate"], "requests are sent when they are due, not before"
    assert one["requests"] == four["requests"] == 30
    assert 0 < one["p50_milliseconds"] <= one["p99_milliseconds"]
    assert found["items"] == 40
    mixed = found["asked"]["recommend, mixed"]
    assert [run["errors"] for run in mixed] == [0, 0, 0, 0], "lists are mixed by what they have in common"
    assert found["errors"] == 0
