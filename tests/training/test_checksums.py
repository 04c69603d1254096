"""The same seed gives the same bits on every processor, as far as docs/explanation/engine.md promises it."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "checksums.py"
KEPT = json.loads((ROOT / "results" / "checksums.json").read_text(encoding="utf-8"))

PINNED = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("numba=="))
of_this_numba = pytest.mark.skipif(
    numba.__version__ != PINNED.removeprefix("numba=="),
    reason=f"the checksums are of {PINNED}",
)
pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the checksums are of x86-64 processors"
)


def trained(**environment: str) -> dict:
    """Return the checksums of a new process."""
    run = subprocess.run(
        [sys.executable, str(TOOL), "print"], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def check(found: dict) -> None:
    (kind,) = found
    assert found[kind].keys() == KEPT[kind].keys()
    for part in KEPT[kind]:
        assert found[kind][part] == KEPT[kind][part], (
            f"bits changed ({part}): if that is meant, run 'python tools/checksums.py write' for both parts of the file"
            " and say why in CHANGELOG.md"
        )


@pytest.fixture(scope="module")
def here() -> dict:
    return trained(DPCML_THREADS="1")


@of_this_numba
def test_trained_models_have_the_bits_in_the_file(here):
    check(here)


def test_threads_change_no_bit_from_any_start(here):
    assert trained(DPCML_THREADS="2") == here


@of_this_numba
def test_a_processor_without_fused_multiply_add_has_the_other_bits_in_the_file():
    found = trained(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert list(found) == ["separate"]
    check(found)


@of_this_numba
def test_narrower_vectors_change_no_bit(here):
    """Haswell is the first with FMA: its vectors are half as wide as later ones', and LLVM unrolls otherwise."""
    if list(here) != ["fused"]:
        pytest.skip("needs a processor with FMA")
    features = "+avx2,+fma,+avx,+sse4.2,+bmi,+bmi2"
    assert trained(NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES=features) == here


def test_blas_of_another_processor_changes_no_bit(here):
    """OpenBLAS and NumPy choose code by processor: both are told to be on an old one. New users may differ."""
    old = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}
    found = trained(DPCML_THREADS="1", **old)
    ((kind, parts),) = here.items()
    assert {**found[kind], "fold-in": parts["fold-in"]} == parts


def test_data_and_starts_do_not_depend_on_the_processor():
    for part in ("data", "start"):
        assert KEPT["fused"][part] == KEPT["separate"][part]


def test_three_models_on_three_sets_are_kept():
    for part in KEPT.values():
        for start in ("random", "spectral", "clusters"):
            assert len(set(part[start].values())) == 9
