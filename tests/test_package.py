from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

import dpcml

HEAVY = ("torch", "matplotlib", "fastapi", "numba", "polars", "scipy", "numpy", "pandas", "ray", "implicit")


def test_import_loads_nothing_heavy():
    code = f"import sys, dpcml; dir(dpcml); print([m for m in {HEAVY!r} if m in sys.modules])"
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
    assert "Interactions" in dpcml.__all__


def test_version_is_a_version():
    assert dpcml.__version__.split(".")[0].isdigit()


def test_types_are_shipped():
    assert resources.files("dpcml").joinpath("py.typed").is_file()
