import pytest

from dpcml.models import MODELS, create
from dpcml.models.presets import PRESETS
from dpcml.utils.errors import ParameterError


@pytest.mark.parametrize("name", [*PRESETS])
def test_every_preset_is_made_with_its_settings_and_changes_win(name):
    kind, settings = PRESETS[name]
    model = create(name, validate_every=7)
    assert type(model) is kind
    assert model.get_params().items() >= {**settings, "validate_every": 7}.items()


@pytest.mark.parametrize("name", [*MODELS])
def test_every_model_is_made_by_its_name(name):
    assert type(create(name)) is MODELS[name]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("dpcml22", {}, "unknown model or preset 'dpcml22': did you mean 'dpcml2'"),
        ("ease", {"l2": "much"}, "l2='much'"),
        ("itemknn", {"k": 2.5}, "k=2.5"),
        ("itemknn", {"shrink": None}, "shrink=None"),
        ("dpcml", {"diversity": ("a", 1)}, "diversity="),
        ("dpcml", {"negatives": ["hard"]}, "negatives="),
        ("popularity", {"k": 1}, "Popularity has no parameter 'k'"),
    ],
)
def test_bad_names_and_values(name, parameters, message):
    with pytest.raises(ParameterError, match=message):
        create(name, **parameters)
