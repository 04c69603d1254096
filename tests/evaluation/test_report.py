import json

import numpy as np
import polars as pl
import pytest

from dpcml import ItemKNN, Report, evaluate
from dpcml.utils.errors import DataError


@pytest.fixture(scope="module")
def report(blocks):
    train, valid, test = blocks.split((0.6, 0.2, 0.2), 1)
    return evaluate(ItemKNN(k=5).fit(train), train, test, valid=valid, protocol="released", k=(3, 30))


def test_json_has_the_keys_that_scripts_rely_on(report, tmp_path):
    report.to_json(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text())
    assert {"protocol", "split", "n_users", "metrics"} <= set(found)
    assert found["protocol"] == "released"
    assert found["metrics"]["P@3"] == pytest.approx(report.metrics["P@3"])
    assert 0 < found["metrics"]["P@3"] < 1
    assert found["metrics"]["P@30"] is None  # nobody has 30 held-out items: undefined, not zero
    assert "per_user" not in found


def test_json_round_trip(report, tmp_path):
    report.to_json(tmp_path / "report.json", per_user=True)
    again = Report.from_json(tmp_path / "report.json")
    assert again.metrics == pytest.approx(report.metrics, nan_ok=True)
    assert (again.parameters, again.masked, again.split) == (report.parameters, report.masked, report.split)
    assert again.users.tolist() == report.users.tolist()
    np.testing.assert_array_equal(again.per_user["R@3"], report.per_user["R@3"])


@pytest.mark.parametrize("text", ["{", "{}", '{"metrics": 3}', "no-such-file.json"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(DataError, match="to_json"):
        Report.from_json(text)


def test_frames_and_files(report, tmp_path):
    report.to_csv(tmp_path / "report.csv")
    report.to_parquet(tmp_path / "report.parquet")
    table = pl.read_parquet(tmp_path / "report.parquet")
    assert table["metric"].to_list() == list(report.metrics)
    assert set(table["split"]) == {report.split}
    assert pl.read_csv(tmp_path / "report.csv").height == len(report.metrics)
    users = report.per_user_frame()
    assert users.height == report.n_users
    assert users["P@30"].null_count() == report.n_users


def test_prints_as_a_table(report):
    text = str(report)
    assert f"split {report.split}, protocol released, 60 users" in text
    assert f"{report.metrics['P@3']:.4f}" in text
    assert "MAP left" in text
