import pytest

from dpcml.models import MODELS, create
from dpcml.models.presets import PRESETS
from dpcml.tuning.space import Space, built_in, read_space
from dpcml.utils.errors import DataError, ParameterError

NAMES = list(dict.fromkeys([*MODELS, *PRESETS]))


@pytest.mark.parametrize("model", NAMES)
@pytest.mark.parametrize("name", ["grid", "wide"])
def test_every_model_has_spaces_whose_corners_it_takes(model, name):
    space = read_space(name, model)
    for share in (0.0, 0.5, 0.999):
        create(model, **space.fixed, **space.at(dict.fromkeys(space.dimensions, share)))
    create(model, **space.fixed, **space.grid_point(space.grid_size - 1))


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
    assert space.grid_point(3) == {"margin": 2.0, "n_vectors": 3}
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
        ("[parameters]\nrandom_state = [0, 1]", r"random_state is a matter of the search.*--seed"),
        ("[fixed]\nmetric = 'MAP'", r"metric is a matter of the search.*--metric"),
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
    with pytest.raises(ParameterError, match=r"n_threads is a matter of the search.*--workers"):
        space.with_fixed("dpcml2", {"n_threads": 1})
    assert Space("nothing", {}).grid_point(0) == {}
    with pytest.raises(ParameterError, match="did you mean 'dim'"):
        read_space("grid", "cml").with_fixed("cml", {"dims": 8})
    assert read_space("grid", "popularity").grid_size == 1
