"""What several tests share: a small world, and the real data where there is some."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from dpcml import Interactions, kernels
from dpcml.data.items import Attributes, ItemTable

settings.register_profile("untimed", deadline=None)  # a crowded machine is no error
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Leave a core to every worker: tests that run side by side would wait for each other's threads."""
    if hasattr(config, "workerinput"):
        os.environ.setdefault("DPCML_THREADS", "1")
    else:
        forget_old_kernels()


def forget_old_kernels() -> None:
    """Remove kernels compiled before a change: Numba looks at a function's own file, not at those it calls."""
    folder = Path(kernels.__file__).parent
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for cached in folder.glob("__pycache__/*.nb[ci]"):
        if cached.stat().st_mtime < newest:
            cached.unlink()


@pytest.fixture(scope="session")
def blocks() -> Interactions:
    """Two kinds of users who each like half of the items, and most of that half: any correct model must learn it."""
    rng = np.random.default_rng(0)
    liked = rng.random((60, 40)) < 0.6
    liked[:30, 20:] = False
    liked[30:, :20] = False
    kinds = Attributes.from_sets([{"left"} if item < 20 else {"right"} for item in range(40)])
    return Interactions.from_csr(
        liked,
        user_ids=[f"user-{k}" for k in range(60)],
        item_ids=100 + np.arange(40),
        items=ItemTable(100 + np.arange(40), attributes=kinds),
    )


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data sets."""
    folder = os.environ.get("DPCML_DATA")
    if not folder:
        pytest.skip("DPCML_DATA is not set: no real data here")
    return Path(folder)
