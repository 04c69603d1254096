"""The kernel against a twin in plain Python and float64, written from the formulas."""

import numpy as np
import pytest

from dpcml.kernels.fold_in import fold_in
from dpcml.kernels.gradients import Objective
from dpcml.kernels.mining import ALL, CLOSEST, HARDEST, SIMILAR, SIMILAR_DRAW
from dpcml.kernels.random import epoch_key
from dpcml.retrieval.fold_in import _similarity, _steps

LIKED, POOL, DIM = 6, 20, 7
KEY = epoch_key(3, 0)
NEGATIVES = {ALL: 4, CLOSEST: 1, SIMILAR: 1, HARDEST: 2}  # of 4 candidates
ATTRACTION = np.linspace(0.2, 1.5, LIKED, dtype=np.float32)
FREE = np.zeros(LIKED, np.float32)


@pytest.fixture
def vectors():
    rng = np.random.default_rng(4)
    users, items = rng.standard_normal((3, DIM)), rng.standard_normal((LIKED + POOL, DIM))
    return (0.6 * users / np.sqrt(DIM)).astype(np.float32), (0.6 * items / np.sqrt(DIM)).astype(np.float32)


def objective(*, margin=0.3, bounds=(0.2, 0.3), weight=2.0, per_pair=False, on_sphere=False, term_weight=1.0):
    numbers = np.float32(margin), *np.float32(bounds), np.float32(weight)
    return Objective(*numbers, per_pair, on_sphere, False, DIM, np.float32(term_weight))


def negatives(twin, U, V, place, p, choice, n_candidates, similar):
    drawn = [((twin.bits_of(KEY, place, s) >> 32) * POOL) >> 32 for s in range(n_candidates)]
    if choice in (CLOSEST, HARDEST):
        near = ((U[:, None] - V[LIKED:][drawn]) ** 2).sum(axis=2).min(axis=0)
        drawn = [drawn[place] for place in np.argsort(near, kind="stable")[: NEGATIVES[choice]]]
    elif choice == SIMILAR:
        chances = np.cumsum(similar[p, drawn].astype(float))
        chance = (twin.bits_of(KEY, place, SIMILAR_DRAW) >> 11) * 2.0**-53
        any_of_them = int(chance * n_candidates)
        drawn = [drawn[int((chances <= chance * chances[-1]).sum()) if chances[-1] else any_of_them]]
    return [LIKED + item for item in drawn]


def by_twin(twin, U, V, attraction, about, choice, n_candidates, n_steps, rate):
    U, V = U.astype(float).copy(), V.astype(float)
    similar = _similarity(V[:LIKED], V[LIKED:])
    state = np.zeros_like(U), np.zeros_like(U), np.zeros(())
    pairs = [(a, b) for a in range(len(U)) for b in range(len(U)) if a != b]
    for step in range(n_steps):
        g = np.zeros_like(U)
        winner = ((U[:, None] - V) ** 2).sum(axis=2).argmin(axis=0)
        near = ((U[:, None] - V) ** 2).sum(axis=2).min(axis=0)
        hinge = 0.0
        for p in range(LIKED):
            g[winner[p]] += attraction[p] * (U[winner[p]] - V[p])
            for item in negatives(twin, U, V, step * LIKED + p, p, choice, n_candidates, similar):
                excess = about.margin + near[p] - near[item]
                if excess > 0:
                    hinge += about.term_weight * excess
                    g[winner[p]] += 2 * about.term_weight * (U[winner[p]] - V[p])
                    g[winner[item]] -= 2 * about.term_weight * (U[winner[item]] - V[item])
        halves = {(a, b): ((U[a] - U[b]) ** 2).sum() / 2 for a, b in pairs}
        mean = np.mean(list(halves.values()))
        for (a, b), half in halves.items():
            value = half if about.per_pair else mean
            sign = float(value > about.upper) - float(value < about.lower)
            g[a] += LIKED * about.weight * 2 / len(pairs) * sign * (U[a] - U[b])
        everything = np.ones(len(U), dtype=bool)
        twin.step(U, g, everything, state, rate * (1 - step / n_steps), about.users_on_sphere, "adam")
    return U, hinge / LIKED


@pytest.mark.parametrize("attraction", [FREE, ATTRACTION], ids=["free", "attracted"])
@pytest.mark.parametrize("choice", list(NEGATIVES))
@pytest.mark.parametrize("about", [
    objective(), objective(per_pair=True), objective(bounds=(0.6, 0.9), on_sphere=True), objective(weight=0.0),
    objective(margin=2.0, bounds=(0.0, 0.01)), objective(term_weight=0.5),
])  # fmt: skip
def test_vectors_are_those_of_the_twin(twin, vectors, attraction, choice, about):
    U, V = vectors
    expected, hinge = by_twin(twin, U, V, attraction, about, choice, 4, 5, 0.03)
    found = U.copy()
    similar = _similarity(V[:LIKED], V[LIKED:])
    loss = fold_in(found, V, attraction, similar, KEY, 4, NEGATIVES[choice], choice, about, _steps(5, 0.03))
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert loss == pytest.approx(hinge, abs=1e-3)
    assert np.abs(found - U).max() > 0.02


def test_one_vector_has_no_diversity(twin, vectors):
    U, V = vectors
    one, free = U[:1].copy(), U[:1].copy()
    for vector, weight in ((one, 10.0), (free, 0.0)):
        about = objective(weight=weight)
        fold_in(vector, V, FREE, np.zeros((0, 0), np.float32), KEY, 4, 1, CLOSEST, about, _steps(5, 0.03))
    assert (one == free).all()


def test_no_step_leaves_everything(vectors):
    U, V = vectors
    found = U.copy()
    fold_in(found, V, FREE, np.zeros((0, 0), np.float32), KEY, 4, 1, CLOSEST, objective(), _steps(0, 0.03))
    assert (found == U).all()
