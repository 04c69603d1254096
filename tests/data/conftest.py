"""A machine without data sets and without the net."""

from __future__ import annotations

from pathlib import Path

import pytest

NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DPCML_DATA and an empty cache, and no way out to the net."""
    monkeypatch.setenv("DPCML_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, NOBODY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return tmp_path / "data"
