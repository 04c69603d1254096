import json

import pytest

from dpcml.training.history import Epoch, History


def history(*figures):
    return History("P@3", [Epoch(k + 1, 1.0 / (k + 1), 0.01, 0.5, figure) for k, figure in enumerate(figures)])


@pytest.mark.parametrize(
    ("figures", "best"),
    [
        ((0.1, 0.3, 0.2), 2),
        ((0.2, 0.2), 1),
        ((None, 0.0, None), 2),
        ((None, None), 2),
        ((0.5, None, 0.5, 0.6, None), 4),
    ],
)
def test_best_is_the_earliest_of_the_highest(figures, best):
    assert history(*figures).best.number == best


def test_empty_history_has_no_best():
    assert History().best is None
    assert History().seconds == 0


def test_seconds_add_up():
    assert history(None, None, 0.1).seconds == 1.5


def test_history_survives_json():
    before = history(None, 0.25)
    after = History.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.epochs[1].loss == 0.5
