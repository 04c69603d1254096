import numpy as np
import pytest

from dpcml.tuning.dimensions import Choice, Range, dimension
from dpcml.utils.errors import ParameterError


def test_a_range_of_whole_numbers_is_drawn_evenly():
    drawn = [Range(2, 5).at(share) for share in np.linspace(0, 1, 4000, endpoint=False)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [2, 3, 4, 5]
    assert counts.tolist() == [1000] * 4
    assert all(isinstance(value, int) for value in drawn)


def test_a_log_range_gives_each_factor_the_same_share():
    drawn = np.array([Range(0.001, 1.0, log=True).at(share) for share in np.linspace(0, 1, 3000, endpoint=False)])
    assert [(drawn < edge).mean().round(2) for edge in (0.01, 0.1)] == [0.33, 0.67]
    assert drawn.min() == 0.001
    assert drawn.max() <= 1.0


@pytest.mark.parametrize("steps", [2, 5, 41])
def test_a_grid_goes_from_end_to_end(steps):
    grid = Range(1.0, 10000.0, log=True, steps=steps).grid()
    assert (len(grid), grid[0], grid[-1]) == (steps, 1.0, 10000.0)
    assert list(grid) == sorted(grid)


def test_a_whole_grid_has_no_value_twice():
    assert Range(2, 4, steps=9).grid() == (2, 3, 4)


def test_every_choice_is_reached_and_order_is_known():
    choice = Choice(("a", "b", "c"))
    assert [choice.at(share) for share in (0.0, 0.34, 0.999, 1.0)] == ["a", "b", "c", "c"]
    assert not choice.ordered
    assert Choice((0.1, 0.2)).ordered
    assert not Choice((0.2, 0.1)).ordered
    assert not Choice(((0.1, 0.2), (0.1, 0.3))).ordered


def test_pairs_are_in_order():
    pairs = dimension("diversity", {"lower": [0.0, 0.3], "upper": [0.1, 0.3]}).grid()
    assert pairs == ((0.0, 0.1), (0.0, 0.3), (0.3, 0.3))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (3, "write a list of values"),
        ([], "at least one value"),
        ([1, 1], "each once"),
        ({"low": 2.0, "high": 1.0}, "low must be a number below high"),
        ({"low": "a", "high": 1.0}, "low must be a number"),
        ({"low": 0.0, "high": 1.0, "log": True}, "true only for low > 0"),
        ({"low": 0.0, "high": 1.0, "steps": 1}, "at least 2"),
        ({"low": 0.0, "lower": [1]}, "do not go together"),
        ({"low": 0.0}, "do not go together"),
        ({"lower": [1], "upper": [0]}, "no lower bound is at most"),
        ({"lower": [1], "upper": "x"}, "a list of numbers"),
        ({"lo": 1}, "did you mean 'low'"),
    ],
)
def test_what_is_wrong_is_said_with_the_name(written, said):
    with pytest.raises(ParameterError, match=said) as caught:
        dimension("margin", written)
    assert str(caught.value).startswith("margin")
