"""Wheel and source archive, and what CI installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "ray", "fastapi", "optuna", "matplotlib", "implicit", "pandas"}


def build(source: Path, target: str, out: Path) -> Path:
    """Build a distribution of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl" if target == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    names = contents(wheel)
    assert {name.split("/")[0] for name in names} == {"dpcml", f"dpcml-{wheel.name.split('-')[1]}.dist-info"}
    assert {"dpcml/py.typed", "dpcml/cli/__init__.py", "dpcml/serving/static/index.html"} <= names.keys()
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc"))]


def test_a_wheel_of_the_source_archive_is_the_same(wheel, tmp_path):
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    again = build(tmp_path / archive.name.removesuffix(".tar.gz"), "wheel", tmp_path / "again")
    assert contents(again) == contents(wheel)


@pytest.mark.skipif("DPCML_TEST_INSTALL" not in os.environ, reason="DPCML_TEST_INSTALL is not set: takes minutes")
def test_the_base_install_runs_the_demo_and_brings_nothing_heavy(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel], check=True)
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-m", "dpcml", "demo", "--users", "80", "--items", "60", "--out", tmp_path / "demo"]
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "planted world: 80 users" in done.stdout
    listed = subprocess.run([*pip, "list", "--format", "freeze"], env=given, capture_output=True, text=True, check=True)
    assert not HEAVY & {line.split("==")[0].lower() for line in listed.stdout.splitlines()}


def test_versions_with_checksums_are_those_of_the_constraints():
    pins = [re.findall(r"^[\w.-]+==[\w.+!-]+", (ROOT / name).read_text(), flags=re.MULTILINE)
            for name in ("constraints.txt", "constraints-hashes.txt")]  # fmt: skip
    assert pins[0] == pins[1], "run 'python tools/lock.py'"


def test_only_python_versions_that_the_workflow_tests_are_declared():
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())[1]
    assert declared == re.findall(r"3\.\d+", tested)


def test_version_and_citation_agree():
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)[1]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_constraints_name_everything_that_the_tests_need():
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    needed = required("dpcml", frozenset({"dev"}))
    assert {canonicalize_name(name) for name in pinned} >= needed - {"dpcml"}


def required(name, extras, seen=None):
    """Return the names of a package and of all that it requires, with the extras that each asks for."""
    seen = {} if seen is None else seen
    name = canonicalize_name(name)
    if extras <= seen.get(name, set()) and name in seen:
        return set(seen)
    seen[name] = seen.get(name, frozenset()) | extras
    for text in distribution(name).requires or ():
        asked = Requirement(text)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in (*seen[name], "")):
            required(asked.name, frozenset(asked.extras), seen)
    return set(seen)
