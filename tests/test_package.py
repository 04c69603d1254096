from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

import dpcml

HEAVY = ("torch", "matplotlib", "fastapi", "numba", "polars", "scipy", "numpy", "pandas", "ray", "implicit")


@pytest.mark.parametrize("imported", ["dpcml; dir(dpcml)", "dpcml.cli"])
def test_import_loads_nothing_heavy(imported):
    code = f"import sys, {imported}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", dpcml.__all__)
def test_public_names_resolve(name):
    assert getattr(dpcml, name) is not None
    assert name in dir(dpcml)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        dpcml.no_such_name  # noqa: B018


def test_names_of_the_contract_are_public():
    data = {"Interactions", "load_dataset", "planted", "by_ratio", "by_time", "leave_last"}
    assert {*data, "evaluate", "compare", "Report", "tune", "create", "save", "load", "Interest", "Reason"} <= {
        *dpcml.__all__
    }


def test_every_model_is_public_once():
    assert {kind.__name__ for kind in (dpcml.MODELS[name] for name in dpcml.MODELS)} <= {*dpcml.__all__}
    assert len(dpcml.__all__) == len(set(dpcml.__all__))


def test_import_of_the_models_package_is_lazy_too():
    code = "import sys, dpcml.models; dir(dpcml.models); print('numba' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_version_is_a_version():
    assert dpcml.__version__.split(".")[0].isdigit()


def test_the_command_tells_its_version_without_loading_the_command_line():
    command = [sys.executable, "-X", "importtime", "-m", "dpcml", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"dpcml {dpcml.__version__}\n"
    assert "dpcml.utils.packages" in done.stderr
    assert "typer" not in done.stderr


def test_types_are_shipped():
    for name in ("py.typed", "__init__.pyi", "models/__init__.pyi"):
        assert resources.files("dpcml").joinpath(name).is_file()
