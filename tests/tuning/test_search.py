import polars as pl
import pytest

from dpcml.evaluation.evaluate import validation
from dpcml.models import create
from dpcml.tuning import search
from dpcml.tuning.dimensions import Choice
from dpcml.tuning.engines import InProcess
from dpcml.tuning.search import tune
from dpcml.tuning.space import Space
from dpcml.utils.errors import DataError, ParameterError

KNN = Space("knn", {"k": Choice((1, 2, 5, 10, 20))})
SMALL = {"dim": 8, "n_vectors": 2, "n_candidates": 3}
RATES = Space("rates", {"learning_rate": Choice((0.001, 0.003, 0.01, 0.03))}, SMALL)


def test_the_best_on_the_validation_part_wins(blocks):
    found = tune(blocks, "itemknn", space=KNN, budget=10, metric="NDCG@3", split_seed=3)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 3)
    figures = {k: validation(create("itemknn", k=k).fit(train), train, valid, "NDCG@3") for k in (1, 2, 5, 10, 20)}
    assert found.best_value == max(figures.values())
    assert figures[found.best_parameters["k"]] == found.best_value
    assert (found.trials, found.failed, found.split) == (5, 0, train.split_hash)
    assert sorted(found.frame["value"]) == sorted(figures.values())


def test_engines_are_given_training_and_validation_parts_only(blocks, monkeypatch):
    given = []
    monkeypatch.setitem(search.ENGINES._things, "local", lambda *parts: given.append(parts) or InProcess(*parts))
    tune(blocks, "itemknn", space=KNN, budget=1)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 0)
    assert [part.content_hash for part in given[0][:2]] == [train.content_hash, valid.content_hash]
    assert len(given[0]) == 3, "the third is the share of the cores"


@pytest.mark.parametrize("sampler", ["random", "grid", "bayes"])
def test_a_search_goes_on_where_it_was(blocks, tmp_path, sampler):
    options = {"space": "wide", "sampler": sampler, "seed": 4}
    whole = tune(blocks, "itemknn", budget=20, file=tmp_path / "a.csv", **options)
    half = tune(blocks, "itemknn", budget=8, file=tmp_path / "b.csv", **options)
    before = pl.read_csv(tmp_path / "b.csv")
    ran = []
    rest = tune(
        blocks, "itemknn", budget=20, file=tmp_path / "b.csv", watch=lambda standing: ran.append(standing), **options
    )
    after = pl.read_csv(tmp_path / "b.csv")
    assert after.head(8).equals(before, null_equal=True), "finished trials are not done again"
    assert (half.trials, rest.trials, len(ran)) == (8, 20, 20)
    assert (rest.best_parameters, rest.best_value) == (whole.best_parameters, whole.best_value)
    assert sorted(after["parameters"]) == sorted(pl.read_csv(tmp_path / "a.csv")["parameters"])


def test_failed_trials_do_not_stop_the_others(blocks, tmp_path):
    space = Space("s", {"device": Choice(("cuda:99", "cpu"))}, {"dim": 4, "epochs": 1})
    found = tune(blocks, "gmf", space=space, sampler="grid", budget=2, workers=1, file=tmp_path / "t.csv")
    assert found.best_parameters == {"dim": 4, "epochs": 1, "device": "cpu"}
    assert (found.trials, found.failed) == (2, 1)
    frame = pl.read_csv(tmp_path / "t.csv")
    assert frame["status"].to_list() == ["failed", "ok"]
    assert "no such GPU here" in frame["error"][0]


def test_nothing_but_failures_is_an_error_with_the_first_reason(blocks):
    space = Space("s", {"dim": Choice((4,))}, {"device": "cuda:99"})
    with pytest.raises(DataError, match=r"none of 1 trials ended well; the first: .*no such GPU here"):
        tune(blocks, "gmf", space=space, workers=1)


def test_halving_trains_the_better_half_for_twice_the_epochs(blocks, tmp_path):
    totals = []
    found = tune(
        blocks, "dpcml", space=RATES, budget=4, halvings=2, epochs=8, workers=1, file=tmp_path / "t.csv",
        watch=lambda standing: totals.append((standing.done, standing.total)),
    )  # fmt: skip
    frame = found.frame.sort("trial")
    assert frame["asked_epochs"].to_list() == [2, 2, 2, 2, 4, 4, 8]
    first, second = frame.head(4), frame.slice(4, 2)
    best = first.sort("value", descending=True, maintain_order=True).head(2)
    assert set(second["parameters"]) == set(best["parameters"])
    assert found.best_value == frame["value"].to_list()[-1], "figures of short runs do not count"
    assert found.best_parameters == {**SMALL, "learning_rate": found.best_parameters["learning_rate"], "epochs": 8}
    assert totals[-1] == (7, 7)
    assert totals[0] == (1, 7)


def test_a_search_can_begin_with_the_models_own_settings(blocks):
    found = tune(blocks, "itemknn", space=KNN, budget=3, defaults=True)
    assert found.frame.sort("trial")["parameters"].to_list()[0] == "{}"
    assert found.trials == 3
    alone = tune(blocks, "itemknn", space=KNN, budget=1, defaults=True)
    assert (alone.trials, alone.best_parameters) == (1, {})


def test_halving_leaves_models_without_epochs_alone(blocks):
    assert tune(blocks, "itemknn", space=KNN, budget=3, halvings=2, epochs=5).trials == 3


def test_epochs_that_are_searched_cannot_be_halved(blocks):
    space = Space("s", {"epochs": Choice((1, 2))}, SMALL)
    with pytest.raises(ParameterError, match="epochs are searched"):
        tune(blocks, "dpcml", space=space, halvings=1)
    assert tune(blocks, "dpcml", space=space, budget=2, workers=1).best_parameters["epochs"] in (1, 2)


def test_the_metric_is_part_of_the_settings_where_the_model_stops_by_it(blocks):
    found = tune(blocks, "dpcml", space=RATES, budget=1, epochs=2, metric="MAP", workers=1)
    assert found.best_parameters["metric"] == "MAP"


def test_workers_change_nothing_but_the_time(blocks):
    one, two = (tune(blocks, "dpcml", space=RATES, budget=3, epochs=2, workers=workers) for workers in (1, 2))
    assert (one.best_parameters, one.best_value) == (two.best_parameters, two.best_value)
    columns = ("trial", "value", "parameters", "epochs", "best_epoch")
    assert one.frame.sort("trial").select(columns).equals(two.frame.sort("trial").select(columns))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget=0"),
        ({"metric": "P"}, "metric='P'"),
        ({"sampler": "randon"}, "did you mean 'random'"),
        ({"engine": "locale"}, "did you mean 'local'"),
        ({"seed": -1}, "seed=-1"),
        ({"halvings": -1}, "halvings=-1"),
        ({"fixed": {"kk": 1}}, "ItemKNN has no parameter 'kk'"),
    ],
)
def test_bad_options_are_refused(blocks, options, said):
    with pytest.raises(ParameterError, match=said):
        tune(blocks, "itemknn", space=KNN, **options)
