"""Bad parameters, missing devices, and no torch at all."""

import subprocess
import sys

import numpy as np
import pytest

from dpcml.models import MODELS, create
from dpcml.models.neural.backend import load_torch
from dpcml.utils.errors import MissingExtraError, ParameterError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 0),
        ("n_candidates", 0),
        ("learning_rate", 0.0),
        ("schedule", "wavy"),
        ("batch_size", 0),
        ("epochs", 0),
        ("patience", 0),
        ("regularisation", -1.0),
        ("negatives", "two-stage"),
        ("device", "gpu"),
        ("device", "cuda:x"),
        ("device", 0),
        ("device", np.array(["cpu", None])),
        ("metric", "P"),
        ("random_state", -1),
        ("n_threads", 0),
    ],
)
def test_bad_values_are_refused_by_all(name, field, value):
    with pytest.raises(ParameterError, match=f"{field}|metric"):
        MODELS[name](**{field: value})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("mlp", "layers", ()),
        ("mlp", "layers", 64),
        ("neumf", "layers", (8, 0)),
        ("neumf", "alpha", 1.5),
        ("neumf", "pretrain_epochs", -1),
        ("m2f", "n_vectors", 0),
        ("m2f", "negative_weight", 0.0),
        ("m2f", "diversity", (2, 1)),
        ("m2f", "diversity_weight", -1),
        ("mgmf", "n_vectors", 0),
        ("transcf", "neighbour_weight", -0.1),
        ("transcf", "distance_weight", float("nan")),
        ("transcf", "margin", 0.0),
        ("lrml", "n_slots", 0),
        ("lrml", "shared_relation", "yes"),
        ("lrml", "init", "warm"),
        ("adacml", "history", 0),
        ("hlr", "history", 2.5),
        ("hlr", "n_slots", 0),
    ],
)
def test_bad_values_of_one(name, field, value):
    with pytest.raises(ParameterError, match=f"{field}="):
        MODELS[name](**{field: value})


def test_m2f_with_dcrs_is_a_preset():
    model = create("m2f+dcrs")
    assert model.name == "m2f"
    assert model.diversity_weight > 0


@pytest.mark.parametrize("device", ["cuda", "cuda:99"])
def test_missing_gpu_is_a_clear_error(likes, device, small):
    if load_torch().cuda.device_count() > int(device.partition(":")[2] or 0):
        pytest.skip("there is such a GPU")
    with pytest.raises(ParameterError, match=rf"device='{device}': there is no such GPU here .*use device='cpu'"):
        small("gmf", device=device).fit(likes)


def test_without_torch_it_says_what_to_install(model, likes, monkeypatch, small):
    monkeypatch.setitem(sys.modules, "torch", None)
    for work in (lambda: small(model.name).fit(likes), lambda: model.score(np.arange(2))):
        with pytest.raises(MissingExtraError, match=r"torch is not installed: pip install .*\[neural\]'"):
            work()


def test_models_are_known_without_importing_torch():
    program = "import sys, dpcml.models, dpcml.cli; dpcml.models.create('hlr'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
