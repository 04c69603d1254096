import pytest

from dpcml.paper.published import METRICS, TABLES, published_figures, published_table
from dpcml.utils.errors import ParameterError


def test_the_papers_tables_are_whole():
    assert {name: len(published_table(name)) for name in TABLES} == {
        "overall": 64, "joint": 8, "diversity": 12, "datasets": 4, "ablation": 8, "eta": 12,
    }  # fmt: skip
    for name in ("overall", "joint", "ablation", "eta"):
        assert all(set(METRICS) <= set(line) for line in published_table(name).values())


def test_figures_are_found_in_several_tables():
    assert published_figures("steam-200k", "DPCML2 w/o DCRS", ("eta", "ablation"))["MRR"] == 0.5003
    assert published_figures("ml-1m", "DPCML2", ("diversity",))["MaxDiv@20"] == 313.086, "no percent"
    assert published_figures("ml-10m", "counts", ("datasets",))["positives"] == 5_003_437
    assert published_figures("likes.csv", "DPCML2") == {}, "a set that the paper does not have"
    with pytest.raises(ParameterError, match="did you mean 'DPCML2'"):
        published_figures("steam-200k", "DPCML3")
