import optuna
import pytest

from dpcml.models import MODELS, create
from dpcml.models.presets import PRESETS
from dpcml.tuning.space import Choice, Range, SearchSpace, built_in, dimension, read_space
from dpcml.utils.errors import DataError, ParameterError

NAMES = list(dict.fromkeys([*MODELS, *PRESETS]))


@pytest.mark.parametrize("model", NAMES)
@pytest.mark.parametrize("name", ["grid", "wide"])
def test_every_model_has_spaces_whose_corners_it_takes(model, name):
    space = read_space(name, model)
    corners = ({name: values.grid()[end] for name, values in space.dimensions.items()} for end in (0, -1))
    for corner in corners:
        create(model, **space.fixed, **corner)


@pytest.mark.parametrize("model", [name for name in NAMES if name != "popularity"])
def test_wide_spaces_have_room_for_the_same_budget(model):
    assert read_space("wide", model).grid_size >= 40


def test_built_in_spaces_are_for_models_that_exist():
    assert set(built_in()) == set(NAMES)


def test_the_papers_grid_is_the_papers():
    space = read_space("grid", "dpcml2")
    assert {name: values.grid() for name, values in space.dimensions.items() if name != "diversity"} == {
        "learning_rate": (0.001, 0.003, 0.01),
        "margin": (1.0, 1.5, 2.0),
        "n_vectors": (2, 3, 4, 5),
        "diversity_weight": (10.0, 20.0, 30.0),
    }
    pairs = space.dimensions["diversity"].grid()
    assert len(pairs) == 5 + 5 + 5 + 4 + 2
    assert all(low <= high for low, high in pairs)
    assert (0.05, 0.25) in pairs


def write(folder, text):
    (folder / "space.toml").write_text(text)
    return folder / "space.toml"


def test_a_file_is_read(tmp_path):
    file = write(tmp_path, "[fixed]\npatience = 'none'\n[parameters]\nmargin = [1.0, 2.0]\nn_vectors = {low=2, high=3}")
    space = read_space(file, "dpcml2")
    assert space.fixed == {"patience": None}
    assert (space.grid_size, sorted(space.dimensions)) == (4, ["margin", "n_vectors"])
    assert space.count == 4
    assert read_space(write(tmp_path, "[parameters]\nmargin = {low=1.0, high=2.0}"), "dpcml2").count is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[parameters]\nmargins = [1.0]", "dpcml2 has no parameter 'margins': did you mean 'margin'"),
        ("[fixed]\nmargins = 1.0", "did you mean 'margin'"),
        ("margin = [1.0]", "parameters go under"),
        ("parameters = 3", "must be a table"),
        ("[fixed]\nmargin = 1.0\n[parameters]\nmargin = [1.0]", "both fixed and searched"),
        ("[parameters]\nmargin = [1.0, -1.0]", "margin=-1.0: must be a finite number above 0"),
        ("[parameters]\ndiversity = [[0.5, 0.1]]", "lower bound must not exceed"),
        ("[parameters]\ndim = {low = 0, high = 4}", "dim=0"),
        ("models = ['ease']\n[parameters]\nl2 = [1.0]", "made for ease, not for dpcml2"),
        ("[parameters]\nmargin = {low = 2.0, high = 1.0}", "below high"),
        ("[parameters]\nrandom_state = [0, 1]", r"random_state is an option of the search.*--seed"),
        ("[fixed]\nmetric = 'MAP'", r"metric is an option of the search.*--metric"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_trained(tmp_path, text, said):
    with pytest.raises(ParameterError, match=said) as caught:
        read_space(write(tmp_path, text), "dpcml2")
    assert "space.toml" in str(caught.value)


def test_missing_and_broken_files_are_told_apart(tmp_path):
    with pytest.raises(ParameterError, match="did you mean 'wide'"):
        read_space("wyde", "ease")
    with pytest.raises(DataError, match="no valid TOML"):
        read_space(write(tmp_path, "a ="), "ease")
    with pytest.raises(ParameterError, match="did you mean 'ease'"):
        read_space("grid", "eaze")


def test_fixed_parameters_are_not_searched():
    space = read_space("grid", "dpcml2").with_fixed("dpcml2", {"margin": 1.2, "dim": 8})
    assert "margin" not in space.dimensions
    assert space.fixed == {"margin": 1.2, "dim": 8}
    with pytest.raises(ParameterError, match="did you mean 'dim'"):
        space.with_fixed("dpcml2", {"dims": 8})
    with pytest.raises(ParameterError, match=r"n_threads is an option of the search.*--workers"):
        space.with_fixed("dpcml2", {"n_threads": 1})
    assert SearchSpace("nothing", {}).grid_size == 1
    with pytest.raises(ParameterError, match="did you mean 'dim'"):
        read_space("grid", "cml").with_fixed("cml", {"dims": 8})
    assert read_space("grid", "popularity").grid_size == 1


@pytest.mark.parametrize("steps", [2, 5, 41])
def test_a_grid_goes_from_end_to_end(steps):
    grid = Range(1.0, 10000.0, log=True, steps=steps).grid()
    assert (len(grid), grid[0], grid[-1]) == (steps, 1.0, 10000.0)
    assert list(grid) == sorted(grid)


def test_a_whole_grid_has_no_value_twice():
    assert Range(2, 4, steps=9).grid() == (2, 3, 4)


def test_suggestions_are_values_of_the_dimension():
    fixed = optuna.trial.FixedTrial({"a": "[0.1, null]", "b": 3, "c": 0.123456, "d": 2.0})
    assert Choice(((0.1, None), (0.2, 0.3))).suggest(fixed, "a") == (0.1, None)
    assert Range(2, 5).suggest(fixed, "b") == 3
    assert Range(0.1, 0.2, log=True).suggest(fixed, "c") == 0.1235, "four digits"
    assert Choice((1.0, 2.0)).suggest(fixed, "d") == 2.0


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
