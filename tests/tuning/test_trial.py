import pytest

from dpcml.evaluation.evaluate import validation
from dpcml.models import create
from dpcml.tuning.trial import FAILED, Task, run_trial


@pytest.fixture(scope="module")
def parts(request):
    return request.getfixturevalue("blocks").split((0.6, 0.2, 0.2), 0)


def test_the_value_is_that_of_the_validation_part(parts):
    train, valid, _ = parts
    outcome = run_trial(Task(1, "ease", {"l2": 3.0}, metric="NDCG@5"), train, valid)
    assert outcome.value == validation(create("ease", l2=3.0).fit(train), train, valid, "NDCG@5")
    assert (outcome.status, outcome.epochs, outcome.error) == ("ok", 0, "")
    assert outcome.seconds > 0


def test_a_model_with_epochs_keeps_its_best_one(parts):
    train, valid, _ = parts
    task = Task(1, "dpcml", {"dim": 8, "n_vectors": 2, "n_candidates": 3}, 4, "MAP", 5, 1)
    outcome = run_trial(task, train, valid)
    model = task.created()
    assert (model.random_state, model.metric, model.epochs, model.n_threads) == (5, "MAP", 4, 1)
    model.fit(train, valid, progress=False)
    assert outcome.value == validation(model, train, valid, "MAP")
    assert (outcome.epochs, outcome.best_epoch) == (4, model.history_.best.number)


def test_a_failure_is_an_outcome(parts, capfd):
    outcome = run_trial(Task(1, "dpcml", {"margin": -1.0}), *parts[:2])
    assert (outcome.status, outcome.value) == (FAILED, None)
    assert outcome.error == "margin=-1.0: must be a finite number above 0"
    assert capfd.readouterr() == ("", "")
