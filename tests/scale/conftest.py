import os
from contextlib import ExitStack

import numpy as np
import pytest

from dpcml import DPCML, Interactions
from dpcml.utils.cluster import ray_session
from dpcml.utils.errors import DataError


@pytest.fixture(scope="session")
def ray_cluster():
    """Ray on this machine, once for all tests: four logical cores."""
    pytest.importorskip("ray")
    os.environ.setdefault("RAY_worker_niceness", "0")  # not 15: other tests must not starve the workers
    with ExitStack() as stack:
        try:
            ray = stack.enter_context(ray_session("local", cores=4))
        except DataError as error:  # a busy machine
            pytest.skip(str(error))
        yield ray


@pytest.fixture(scope="session")
def likes():
    """Four groups of users who like items of two of four kinds."""
    rng = np.random.default_rng(0)
    chance = np.kron(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]), np.full((40, 25), 0.35)) + 0.01
    return Interactions.from_csr(rng.random(chance.shape) < chance)


@pytest.fixture(scope="session")
def parts(likes):
    return likes.split((0.6, 0.2, 0.2), 0)


@pytest.fixture
def model():
    return DPCML(n_vectors=2, dim=8, epochs=4, n_candidates=5, batch_size=64, validate_every=2, n_threads=1)
