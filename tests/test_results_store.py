from pathlib import Path

import polars as pl
import pytest

from dpcml.results_store import ResultsStore
from dpcml.utils.errors import DataError

RESULTS = Path(__file__).parents[1] / "results"


def test_rows_are_found_again_with_every_bit(tmp_path):
    path = tmp_path / "deep" / "rows.csv"
    ResultsStore(path, ("label",)).put([{"label": "a", "value": 1 / 3, "error": 'a "bad", thing', "epochs": None}])
    (row,) = ResultsStore(path, ("label",)).rows
    assert row == {"label": "a", "value": 1 / 3, "error": 'a "bad", thing', "epochs": None}
    assert [file.name for file in path.parent.iterdir()] == ["rows.csv"]


def test_a_row_replaces_one_of_the_same_key_and_may_have_other_columns(tmp_path):
    store = ResultsStore(tmp_path / "rows.csv", ("label", "seed"), ordered=True, decimals=6)
    store.put([{"label": "b", "seed": 0, "P@3": 0.5}, {"label": "a", "seed": 1, "MAP": 1}])
    store.put([{"label": "b", "seed": 0, "P@3": 0.25, "MAP": 0.5}])
    frame = pl.read_csv(tmp_path / "rows.csv")
    assert frame.to_dicts() == [
        {"label": "a", "seed": 1, "MAP": 1.0, "P@3": None}, {"label": "b", "seed": 0, "MAP": 0.5, "P@3": 0.25},
    ]  # fmt: skip


def test_an_empty_store_has_no_file(tmp_path):
    store = ResultsStore(tmp_path / "rows.csv", ("label",))
    store.put([{"label": "a"}])
    store.remove({"label": "b"})
    assert store.path.exists()
    store.remove({"label": "a"})
    assert not store.path.exists()


def test_without_resume_the_file_is_replaced(tmp_path):
    ResultsStore(tmp_path / "rows.csv", ("label",)).put([{"label": "a"}])
    fresh = ResultsStore(tmp_path / "rows.csv", ("label",), resume=False)
    assert len(fresh) == 0
    fresh.put([{"label": "b"}])
    assert [row["label"] for row in ResultsStore(tmp_path / "rows.csv", ("label",)).rows] == ["b"]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "label\n1,2,3\n", "\x00\x01\x02"])
def test_a_file_that_is_something_else_is_refused_and_kept(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=r"t\.csv: .*; move it away"):
        ResultsStore(tmp_path / "t.csv", ("label", "seed"))
    assert (tmp_path / "t.csv").read_text() == text


def test_digits_in_text_columns_stay_text(tmp_path):
    ResultsStore(tmp_path / "t.csv", ("label",)).put([{"label": "7", "split": "0012345678901234", "model": "2sts"}])
    assert ResultsStore(tmp_path / "t.csv", ("label",)).rows[0]["split"] == "0012345678901234"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("tuning/*/*/trials.csv")), ids=lambda file: file.parent.name)
def test_tables_of_finished_searches_can_be_read(file):
    frame = ResultsStore(file, ("model", "parameters", "asked_epochs", "metric", "seed", "split", "version")).frame
    assert frame.height
    assert set(frame["status"]) <= {"ok", "failed", "pruned"}
    assert frame["value"].dtype == pl.Float64
