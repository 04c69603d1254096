from dataclasses import replace

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.kernels.random import epoch_key

BOUNDS = {
    "below": (0.9, 1.2),
    "above": (0.0, 0.01),
    "inside": (0.0, 2.0),
    "some": (0.2, 0.35),
    "upper alone": (-np.inf, 0.1),
}


def summed(engine, twin):
    """Return the kernel's gradients of the whole world as one batch, and that batch."""
    U, V = twin.vectors(engine)
    engine.epoch(2, 0.0)
    key = epoch_key(engine.config.seed, 2)
    batch = twin.mine(engine, U, V, key, engine._order.draw(key))
    found = [table.moments[:, : engine.dim] / np.float32(0.1) for table in (engine.users, engine.items)]
    return U, V, batch, found[0].reshape(U.shape), found[1]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("per_pair", [False, True])
@pytest.mark.parametrize(
    ("negatives", "changes"),
    [("hard", {}), ("uniform", {}), ("partial-auc", {}), ("hard", {"pull": 0.4, "adaptive": True})],
)
def test_gradients_are_those_of_the_twin(build, twin, world, bounds, per_pair, negatives, changes):
    engine = build(negatives, diversity=BOUNDS[bounds], diversity_per_pair=per_pair, n_threads=2, **changes)
    U, V, batch, of_users, of_items = summed(engine, twin)
    attraction = twin.attraction(world, engine.config.pull)
    (users, users_touched), (items, items_touched) = twin.gradients(U, V, batch, engine.config, attraction)
    np.testing.assert_allclose(of_users, users, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(of_items, items, rtol=1e-5, atol=2e-5)
    assert (engine.users.moments.any(axis=1) == users_touched.ravel()).all()
    assert (engine.items.moments.any(axis=1) == items_touched).all()


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("per_pair", [False, True])
@pytest.mark.parametrize(("negatives", "pull"), [("hard", 0.0), ("partial-auc", 0.4)])
def test_gradients_are_finite_differences_of_the_objective(build, twin, world, bounds, per_pair, negatives, pull):
    few = Interactions.from_csr(world.csr[:6])
    engine = build(negatives, data=few, diversity=BOUNDS[bounds], diversity_per_pair=per_pair, pull=pull)
    attraction = twin.attraction(few, pull)
    U, V, batch, of_users, of_items = summed(engine, twin)
    for array, found in ((U, of_users), (V, of_items)):
        smooth = 0
        for place in np.random.default_rng(0).choice(array.size, 30, replace=False):
            at = np.unravel_index(place, array.shape)
            given = U, V, batch, engine.config, attraction
            ahead, back = (slope(given, array, at, eps, twin) for eps in (1e-5, -1e-5))
            if abs(ahead - back) < 0.05:  # no kink in between
                assert found[at] == pytest.approx((ahead + back) / 2, abs=1e-4)
                smooth += 1
        assert smooth > 20


def slope(given, array, at, eps, twin):
    before, value = array[at], twin.objective(*given)[1]
    array[at] = before + eps
    moved = twin.objective(*given)[1]
    array[at] = before
    return (moved - value) / eps


def test_diversity_counts_once_per_user_in_a_batch(build, twin):
    """User 0 has 29 positives in the batch, user 1 one; both feel the same weight."""
    engine = build("hard", diversity=(0.9, 1.2), margin=1e-6, diversity_weight=1.0)
    engine.users.vectors[:] = np.tile(engine.users.vectors[:3], (len(engine.users.vectors) // 3, 1))
    engine.users.squares[:] = np.tile(engine.users.squares[:3], len(engine.users.squares) // 3)
    U, V, batch, of_users, _ = summed(engine, twin)
    (without, _), _ = twin.gradients(U, V, batch, replace(engine.config, diversity_weight=0.0))
    of_diversity = of_users - without
    np.testing.assert_allclose(of_diversity[0], of_diversity[1], rtol=1e-5, atol=2e-5)
    assert np.abs(of_diversity[0]).max() > 0.05


def test_one_vector_has_no_diversity(build, twin):
    engine = build("hard", n_vectors=1, diversity=(0.9, 1.2))
    U, V, batch, of_users, of_items = summed(engine, twin)
    (users, _), (items, _) = twin.gradients(U, V, batch, engine.config)
    np.testing.assert_allclose(of_users, users, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(of_items, items, rtol=1e-5, atol=2e-5)
