"""Searches for settings: the same budget for all, every trial kept, and what they find is what rows are run with."""

import polars as pl
import pytest

from dpcml.data.synthetic import planted
from dpcml.paper import fingerprint
from dpcml.paper.searches import Search, run_searches, searches
from dpcml.paper.spec import found_settings, parse_spec, read_spec, specs
from dpcml.paper.studies import search_settings
from dpcml.utils.errors import ParameterError


@pytest.fixture
def world(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    return str(tmp_path / "world.csv")


def neighbours(world, budget=3):
    return Search(world, "itemknn", budget)


def test_every_method_of_every_set_has_the_same_budget():
    found = searches()
    assert len({(one.budget, one.halvings, one.metric) for one in found}) == 1
    sets = {data: {one.model for one in found if one.data == data} for data in ("steam-200k", "ml-1m", "citeulike-t")}
    assert len(set(map(frozenset, sets.values()))) == 1
    assert {"itemknn", "hlr", "ease", "ials", "bpr", "dpcml1", "dpcml2", "m2f+dcrs", "gfja+dcrs"} <= sets["ml-1m"]


def test_every_search_that_a_row_names_exists():
    known = {one.model for one in searches()}
    for name in specs():
        for entry in read_spec(name).entries:
            assert entry.get("search", "itemknn") in known
            assert "on" not in entry or "search" not in entry, "settings of a row with a search are not set by hand"


def test_an_unknown_method_is_bad_input():
    with pytest.raises(ParameterError, match="no search for 'eaze': did you mean 'ease'"):
        searches(models=["eaze"])


def test_a_search_keeps_its_trials_and_begins_again_only_for_other_code(world, tmp_path, monkeypatch):
    said: list[str] = []
    assert run_searches([neighbours(world)], tmp_path, say=said.append) == []
    folder = neighbours(world).folder(tmp_path)
    trials = pl.read_csv(folder / "trials.csv")
    assert trials.height == 3
    assert trials["parameters"][0] == "{}", "the defaults come first"
    assert trials["fingerprint"].n_unique() == 1
    assert found_settings(tmp_path, world, "itemknn") or trials["value"].arg_max() == 0
    before = (folder / "trials.csv").read_bytes()
    run_searches([neighbours(world)], tmp_path)
    assert (folder / "trials.csv").read_bytes() == before, "finished trials are not run again"
    run_searches([neighbours(world, 5)], tmp_path)
    assert pl.read_csv(folder / "trials.csv")["seconds"].to_list()[:3] == trials["seconds"].to_list()
    monkeypatch.setattr(fingerprint, "model_code", lambda model: "00000000")
    run_searches([neighbours(world)], tmp_path)
    again = pl.read_csv(folder / "trials.csv")
    assert again.height == 3
    assert set(again["fingerprint"]) != set(trials["fingerprint"])


def test_a_halved_search_is_done_with_its_table_alone_and_begins_again_with_a_part_of_it(world, tmp_path):
    search = Search(world, "bpr", 5, halvings=2, epochs=8, fixed={"validate_every": 2})
    run_searches([search], tmp_path)
    table = search.folder(tmp_path) / "trials.csv"
    trials = pl.read_csv(table)
    assert "pruned" in set(trials["status"])
    table.with_suffix(".journal").unlink()
    run_searches([search], tmp_path)
    assert pl.read_csv(table).equals(trials), "trials that halving ended are not run again"
    table.with_suffix(".journal").unlink()
    trials.head(3).write_csv(table)
    run_searches([search], tmp_path)
    again = pl.read_csv(table)
    assert again.drop("seconds").equals(trials.drop("seconds")), "halving sees the same trials"


def test_a_search_that_fails_leaves_the_others(world, tmp_path):
    said: list[str] = []
    missing = Search(str(tmp_path / "missing.csv"), "itemknn", 2)
    failed = run_searches([missing, neighbours(world, 2)], tmp_path, say=said.append)
    assert len(failed) == 1
    assert "missing.csv" in failed[0]
    assert "[2/2]" in said[1]
    assert "2 trials" in said[1]


def test_quick_searches_go_to_a_folder_of_their_own(world, tmp_path):
    assert search_settings(data=[world], models=["itemknn"], quick=True, out=tmp_path) == []
    assert (tmp_path / "quick" / "tuning" / "world" / "itemknn" / "best.toml").is_file()


TEXT = """
title = "T"
about = "A"
data = ["steam-200k"]
[[row]]
label = "found"
model = "dpcml2"
search = "dpcml2"
parameters = { margin = 2.0 }
[[row]]
label = "lower"
model = "dpcml2"
search = "dpcml2"
bound = "lower"
[[row]]
label = "upper"
model = "dpcml2"
bound = "upper"
[[row]]
label = "wide"
model = "hars"
as_wide_as = "DPCML2"
seeds = { ml-1m = 3, steam-200k = 1 }
"""


def test_rows_have_the_settings_that_were_found(tmp_path):
    folder = tmp_path / "steam-200k" / "dpcml2"
    folder.mkdir(parents=True)
    (folder / "best.toml").write_text(
        "[parameters]\nmargin = 1.0\nlearning_rate = 0.01\nn_vectors = 3\ndiversity = [0.2, 0.8]\n"
    )
    spec = parse_spec("t", TEXT).searched_in(tmp_path)
    found, lower, upper, wide = spec.rows
    assert found.parameters == {"margin": 2.0, "learning_rate": 0.01, "n_vectors": 3, "diversity": (0.2, 0.8)}
    assert lower.parameters["diversity"] == (0.2, None)
    assert upper.parameters["diversity"] == (None, 0.25), "the default of the model"
    assert wide.parameters == {"dim": 300}
    assert spec.seeds_of(wide) == 1
    assert parse_spec("t", TEXT, quick=True).rows[0].parameters == {"margin": 2.0}, "quick runs have no searches"
