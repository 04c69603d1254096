"""What tests of several verbs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcml.data.synthetic import planted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a small planted world in a file."""
    planted(120, 90, positives=15, n_categories=4, seed=3).write_csv(tmp_path / "likes.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path
