import pytest

from dpcml.tuning.dimensions import Choice, Range
from dpcml.tuning.samplers import BATCH, SAMPLERS
from dpcml.tuning.space import Space

SPACE = Space("s", {"x": Range(0.0, 1.0, steps=7), "kind": Choice(("a", "b", "c"))})
SMALL = Space("s", {"x": Range(1, 4), "kind": Choice(("a", "b"))})


def proposed(name, space, budget, seed=0, judge=lambda point: 0.0):
    sampler = SAMPLERS[name](space, seed)
    points = []
    while len(points) < budget:
        some = sampler.propose(min(budget - len(points), sampler.batch or budget))
        for point in some:
            sampler.learn(point, judge(point))
        points += some
        if not some:
            break
    return points


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_points_are_new_and_a_larger_budget_begins_with_a_smaller(name):
    few, many = proposed(name, SPACE, BATCH), proposed(name, SPACE, 2 * BATCH)
    assert many[:BATCH] == few
    assert len({repr(point) for point in many}) == len(many) == 2 * BATCH


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_a_small_space_is_tried_whole_and_no_more(name):
    points = proposed(name, SMALL, 50)
    assert {(point["x"], point["kind"]) for point in points} == {(x, kind) for x in range(1, 5) for kind in "ab"}
    assert len(points) == 8


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_a_space_without_parameters_has_one_point(name):
    assert proposed(name, Space("none", {}), 5) == [{}]


@pytest.mark.parametrize("name", ["random", "bayes"])
def test_the_seed_decides(name):
    assert proposed(name, SPACE, 5, seed=1) == proposed(name, SPACE, 5, seed=1) != proposed(name, SPACE, 5, seed=2)


def test_part_of_a_grid_is_spread_over_all_of_it():
    points = proposed("grid", Space("g", {name: Range(0.0, 1.0, steps=10) for name in "xyz"}), 50)
    for name in "xyz":
        values = [point[name] for point in points]
        assert all(2 <= values.count(value) <= 9 for value in set(values))
        assert len(set(values)) == 10


def test_bayes_goes_where_it_is_better():
    def judge(point):
        return -((point["x"] - 0.7) ** 2) - (point["kind"] != "b")

    learned, drawn = (proposed(name, SPACE, 40, judge=judge) for name in ("bayes", "random"))
    good = [sum(judge(point) > -0.05 for point in points[16:]) for points in (learned, drawn)]
    assert good[0] > 2 * good[1]


def test_optuna_may_talk_as_before():
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    SAMPLERS["bayes"](SPACE, 0)
    assert optuna.logging.get_verbosity() == before


def test_bayes_takes_failures():
    sampler = SAMPLERS["bayes"](SPACE, 0)
    for _ in range(3):
        for point in sampler.propose(BATCH):
            sampler.learn(point, None)
    assert len(sampler.propose(1)) == 1
