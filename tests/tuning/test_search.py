import polars as pl
import pytest

from dpcml.evaluation.evaluate import validation
from dpcml.models import create
from dpcml.tuning import SearchSpace, search, tune
from dpcml.tuning.space import Choice, Range
from dpcml.tuning.workers import OUTCOME, PARAMETERS, WORKER
from dpcml.utils.errors import DataError, ParameterError

KNN = SearchSpace("knn", {"k": Choice((1, 2, 5, 10, 20))})
SMALL = {"dim": 8, "n_vectors": 2, "n_candidates": 3}
RATES = SearchSpace("rates", {"learning_rate": Choice((0.001, 0.003, 0.01, 0.03))}, SMALL)


def test_the_best_on_the_validation_part_wins(blocks):
    found = tune(blocks, "itemknn", space=KNN, budget=10, metric="NDCG@3", split_seed=3)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 3)
    figures = {k: validation(create("itemknn", k=k).fit(train), train, valid, "NDCG@3") for k in (1, 2, 5, 10, 20)}
    assert found.best_value == max(figures.values())
    assert figures[found.best_parameters["k"]] == found.best_value
    assert (found.trials, found.failed, found.split) == (5, 0, train.split_hash)
    assert sorted(found.frame["value"]) == sorted(figures.values())


def test_trials_get_the_training_and_the_validation_part_only(blocks, monkeypatch):
    given = []
    run_here = search.SearchRun.run_here
    monkeypatch.setattr(
        search.SearchRun, "run_here", lambda self, *parts: given.append(parts) or run_here(self, *parts)
    )
    tune(blocks, "itemknn", space=KNN, budget=1)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 0)
    assert [[part.content_hash for part in parts] for parts in given] == [[train.content_hash, valid.content_hash]]


def test_a_ready_split_is_used_as_it_is(blocks):
    ready = blocks.split((0.6, 0.2, 0.2), 7)
    found = tune(blocks, "itemknn", space=KNN, budget=5, split=ready)
    again = tune(blocks, "itemknn", space=KNN, budget=5, split_seed=7)
    assert (found.split, found.best_value) == (ready.hash, again.best_value)
    with pytest.raises(ParameterError, match="has no validation part"):
        tune(blocks, "itemknn", space=KNN, split=blocks.split((0.8, 0.2), 0))


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "table only"])
@pytest.mark.parametrize("sampler", ["random", "grid", "tpe"])
def test_a_search_goes_on_where_it_was(blocks, tmp_path, sampler, journal):
    options = {"space": "wide", "sampler": sampler, "seed": 4}
    whole = tune(blocks, "itemknn", budget=20, file=tmp_path / "a.csv", **options)
    half = tune(blocks, "itemknn", budget=8, file=tmp_path / "b.csv", **options)
    before = pl.read_csv(tmp_path / "b.csv")
    if not journal:
        (tmp_path / "b.journal").unlink()
    ran = []
    rest = tune(blocks, "itemknn", budget=20, file=tmp_path / "b.csv", callback=ran.append, **options)
    after = pl.read_csv(tmp_path / "b.csv")
    assert after.head(8).equals(before, null_equal=True), "finished trials are not run again"
    assert (half.trials, rest.trials, len(ran)) == (8, 20, 12)
    assert (ran[0].done, ran[-1].done, ran[-1].total) == (9, 20, 20)
    assert (rest.best_parameters, rest.best_value) == (whole.best_parameters, whole.best_value)
    assert sorted(after["parameters"]) == sorted(pl.read_csv(tmp_path / "a.csv")["parameters"])


def test_tables_of_earlier_versions_are_taken_over(blocks, tmp_path):
    found = tune(blocks, "itemknn", space=KNN, budget=3, file=tmp_path / "t.csv", label="here")
    (tmp_path / "t.journal").unlink()
    ran = []
    assert tune(blocks, "itemknn", space=KNN, budget=3, file=tmp_path / "t.csv", callback=ran.append).trials == 3
    assert ran == []
    other = tune(blocks, "itemknn", space=KNN, budget=3, metric="MAP", file=tmp_path / "t.csv", callback=ran.append)
    assert len(ran) == 3, "another metric is another search"
    assert other.frame.height == 6, "and its trials stand beside the others in the table"
    names = ["trial", "status", "metric", "value", "model", "parameters", "asked_epochs", "epochs", "best_epoch"]
    names += ["seconds", "seed", "data", "split", "protocol", "version", "error"]
    assert found.frame.columns == names
    assert set(found.frame["data"]) == {"here"}


@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_points_are_new_and_a_larger_budget_begins_with_a_smaller(sampler):
    space = SearchSpace("s", {"x": Range(0.0, 1.0, steps=7), "kind": Choice(("a", "b", (1, None)))})
    few, many = (search.SAMPLERS[sampler](space, n, 3) for n in (8, 16))
    assert many[:8] == few
    assert len({repr(point) for point in many}) == 16
    assert search.SAMPLERS[sampler](space, 8, 4) != few, "the seed decides"


@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_a_small_space_is_tried_whole_and_no_more(sampler):
    space = SearchSpace("s", {"x": Range(1, 4), "kind": Choice(("a", "b"))})
    points = search.SAMPLERS[sampler](space, 50, 0)
    assert {(point["x"], point["kind"]) for point in points} == {(x, kind) for x in range(1, 5) for kind in "ab"}
    assert len(points) == 8
    assert search.SAMPLERS[sampler](SearchSpace("none", {}), 5, 0) == [{}]


def test_failed_trials_do_not_stop_the_others_and_are_run_again(blocks, tmp_path):
    space = SearchSpace("s", {"device": Choice(("cuda:99", "cpu"))}, {"dim": 4, "epochs": 1})
    for failures in (1, 2):
        found = tune(blocks, "gmf", space=space, sampler="grid", budget=2, workers=1, file=tmp_path / "t.csv")
        assert found.best_parameters == {"dim": 4, "epochs": 1, "device": "cpu"}
        assert found.failed == failures, "a failed trial is tried again by the next call"
    frame = pl.read_csv(tmp_path / "t.csv")
    assert sorted(frame["status"]) == ["failed", "ok"]
    assert "no such GPU here" in frame.filter(pl.col("status") == "failed")["error"][0]


@pytest.mark.parametrize("moment", [WORKER, PARAMETERS, OUTCOME, "told"])
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_trial_that_was_killed_at_any_moment_is_run_again_and_counts_once(
    blocks, tmp_path, monkeypatch, moment, sampler
):
    import optuna

    set_attribute, tell, moments = optuna.trial.Trial.set_user_attr, optuna.Study.tell, []

    def killed_at(reached):
        moments.append(reached)
        if moments.count(moment) == 2:
            raise KeyboardInterrupt

    def set_or_die(trial, key, value):
        killed_at(key)
        set_attribute(trial, key, value)

    def tell_or_die(*arguments, **options):
        killed_at("told")
        return tell(*arguments, **options)

    asked = {"space": KNN, "budget": 4, "workers": 1, "sampler": sampler}
    with monkeypatch.context() as patched:
        patched.setattr(optuna.trial.Trial, "set_user_attr", set_or_die)
        patched.setattr(optuna.Study, "tell", tell_or_die)
        with pytest.raises(KeyboardInterrupt):
            tune(blocks, "itemknn", **asked, file=tmp_path / "t.csv")
    again = tune(blocks, "itemknn", **asked, file=tmp_path / "t.csv")
    whole = tune(blocks, "itemknn", **asked, file=tmp_path / "whole.csv")
    assert (again.trials, again.failed) == (4, 0)
    assert sorted(again.frame["parameters"]) == sorted(whole.frame["parameters"])


def test_nothing_but_failures_is_an_error_with_the_first_reason(blocks):
    space = SearchSpace("s", {"dim": Choice((4,))}, {"device": "cuda:99"})
    with pytest.raises(DataError, match=r"none of 1 trials ended well; the first: .*no such GPU here"):
        tune(blocks, "gmf", space=space, workers=1)


def test_successive_halving_prunes_the_worse_half(blocks):
    rates = SearchSpace("rates", {"learning_rate": Choice((1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.05))}, SMALL)
    found = tune(
        blocks, "dpcml", space=rates, budget=8, halvings=2, epochs=8, metric="MAP", workers=1,
        fixed={"validate_every": 1, "patience": None, "init": "random"},
    )  # fmt: skip
    frame = found.frame.sort("trial")
    pruned = frame.filter(pl.col("status") == "pruned")
    assert pruned.height
    assert set(pruned["epochs"]) <= {2, 4}, "at the rungs"
    kept = frame.filter(pl.col("status") == "ok")
    assert set(kept["epochs"]) == {8}
    assert found.best_value == kept["value"].max()
    assert found.best_parameters["epochs"] == 8


def test_a_search_can_begin_with_the_models_own_parameters(blocks):
    found = tune(blocks, "itemknn", space=KNN, budget=3, defaults=True)
    assert found.frame.sort("trial")["parameters"].to_list()[0] == "{}"
    assert found.trials == 3
    alone = tune(blocks, "itemknn", space=KNN, budget=1, defaults=True, sampler="tpe")
    assert (alone.trials, alone.best_parameters) == (1, {})


def test_halving_leaves_models_without_epochs_alone(blocks):
    assert tune(blocks, "itemknn", space=KNN, budget=3, halvings=2, epochs=5).trials == 3


@pytest.mark.parametrize(
    ("model", "fixed"),
    [("blend", SMALL | {"ials__dim": 8, "ials__epochs": 2}), ("dpcml", SMALL | {"popularity": 0.3})],
    ids=["blend", "popularity added afterwards"],
)
def test_the_value_of_a_trial_is_that_of_the_model_that_is_delivered(blocks, model, fixed):
    space = SearchSpace("s", {"learning_rate": Choice((0.003,))}, fixed)
    found = tune(blocks, model, space=space, budget=1, epochs=3, metric="MAP", workers=1)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 0)
    fitted = create(model, **found.best_parameters, random_state=0).fit(train, valid, progress=False)
    assert found.best_value == validation(fitted, train, valid, "MAP")
    assert found.best_value != fitted.history_.best.validation


def test_a_history_that_has_the_value_is_believed(blocks, monkeypatch):
    monkeypatch.setattr("dpcml.tuning.workers.validation", lambda *_: pytest.fail("evaluated once more"))
    space = SearchSpace("s", {"learning_rate": Choice((0.003,))}, SMALL)
    found = tune(blocks, "dpcml2", space=space, budget=1, epochs=3, metric="MAP", workers=1)
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 0)
    fitted = create("dpcml2", **found.best_parameters).fit(train, valid, progress=False)
    assert found.best_value == fitted.history_.best.validation == validation(fitted, train, valid, "MAP")


@pytest.mark.parametrize("name", ["epochs", "dpcml__epochs"])
def test_epochs_of_a_blend_are_those_of_its_first_member(blocks, name):
    fixed = SMALL | {"ials__dim": 8, "ials__epochs": 2, name: 9}
    space = SearchSpace("s", {"learning_rate": Choice((0.003,))}, fixed)
    found = tune(blocks, "blend", space=space, budget=1, epochs=3, workers=1)
    assert found.frame["epochs"].to_list() == found.frame["asked_epochs"].to_list() == [3]
    assert found.best_parameters["dpcml__epochs"] == 3
    assert create("blend", **found.best_parameters).models[0].epochs == 3
    with pytest.raises(ParameterError, match="epochs are searched"):
        tune(blocks, "blend", space=SearchSpace("s", {name: Choice((1, 2))}), epochs=3)


def test_epochs_that_are_searched_cannot_be_halved(blocks):
    space = SearchSpace("s", {"epochs": Choice((1, 2))}, SMALL)
    with pytest.raises(ParameterError, match="epochs are searched"):
        tune(blocks, "dpcml", space=space, halvings=1)
    assert tune(blocks, "dpcml", space=space, budget=2, workers=1).best_parameters["epochs"] in (1, 2)


def test_the_metric_is_part_of_the_parameters_where_the_model_stops_by_it(blocks):
    found = tune(blocks, "dpcml", space=RATES, budget=1, epochs=2, metric="MAP", workers=1)
    assert found.best_parameters["metric"] == "MAP"


def test_tpe_goes_where_it_is_better(blocks, monkeypatch):
    """The value of a trial is made up: it is highest at k = 700."""
    monkeypatch.setattr("dpcml.tuning.workers.validation", lambda model, *_: -abs(model.k - 700) / 1000)
    space = SearchSpace("s", {"k": Range(1, 1000)})
    learned, drawn = (tune(blocks, "itemknn", space=space, sampler=name, budget=40) for name in ("tpe", "random"))
    good = [found.frame.sort("trial").tail(24)["value"].gt(-0.1).sum() for found in (learned, drawn)]
    assert good[0] > 1.5 * good[1]
    again = tune(blocks, "itemknn", space=space, sampler="tpe", budget=40)
    assert again.frame["parameters"].to_list() == learned.frame["parameters"].to_list(), "one worker, one seed"


def test_the_old_name_of_tpe_works_with_a_warning(blocks):
    with pytest.warns(FutureWarning, match="'bayes' is called 'tpe' now"):
        tune(blocks, "itemknn", space=KNN, budget=1, sampler="bayes")


def test_optuna_logs_as_before(blocks):
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    tune(blocks, "itemknn", space=KNN, budget=1)
    assert optuna.logging.get_verbosity() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget=0"),
        ({"metric": "P"}, "metric='P'"),
        ({"sampler": "randon"}, "did you mean 'random'"),
        ({"engine": "locale"}, "did you mean 'local'"),
        ({"seed": -1}, "seed=-1"),
        ({"halvings": -1}, "halvings=-1"),
        ({"workers": 0}, "workers=0"),
        ({"fixed": {"kk": 1}}, "ItemKNN has no parameter 'kk'"),
    ],
)
def test_bad_options_are_refused(blocks, options, said):
    with pytest.raises(ParameterError, match=said):
        tune(blocks, "itemknn", space=KNN, **options)
