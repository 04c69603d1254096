import numpy as np
import pytest

from dpcml.kernels.random import epoch_key


@pytest.mark.parametrize(
    ("negatives", "changes"),
    [
        ("hard", {}),
        ("hard", {"n_vectors": 1, "users_on_sphere": True}),
        ("hard", {"optimizer": "adagrad", "diversity_per_pair": True}),
        ("uniform", {"users_on_sphere": True, "items_on_sphere": True}),
        ("popularity", {}),
        ("two-stage", {}),
        ("partial-auc", {"n_candidates": 25}),
        ("partial-auc", {"users_on_sphere": True, "pull": 0.3, "adaptive": True}),
        ("hard", {"pull": 0.5}),
        ("hard", {"adaptive": True, "diversity_per_pair": True}),
        ("uniform", {"adaptive": True, "n_vectors": 5, "pull": 0.1}),
    ],
)
def test_epochs_are_those_of_plain_numpy(build, twin, world, negatives, changes):
    check(build, twin, world, negatives, changes)


@pytest.mark.parametrize(("negatives", "changes"), [("hard", {"pull": 0.5}), ("uniform", {}), ("partial-auc", {})])
def test_epochs_with_weights_are_those_of_plain_numpy(build, twin, weighted, negatives, changes):
    check(build, twin, weighted, negatives, changes, weighted.confidence.toarray())


def check(build, twin, world, negatives, changes, confidence=None):
    engine = build(negatives, **{"batch_size": 32, "n_threads": 2, "seed": 9, "data": world, **changes})
    config = engine.config
    attraction = twin.attraction(world, config.pull)
    U, V = twin.vectors(engine)
    state = {name: (np.zeros_like(rows), np.zeros_like(rows), np.zeros((), int)) for name, rows in (("U", U), ("V", V))}
    for number in range(2):
        loss = engine.epoch(number, 0.01)
        expected = plain_epoch(engine, U, V, state, number, 0.01, twin, attraction, confidence)
        assert loss == pytest.approx(expected, abs=1e-4)
    for found, rows in zip(twin.vectors(engine), (U, V), strict=True):
        np.testing.assert_allclose(found, rows, atol=5e-4)
    users = engine.user_vectors()
    repeated = (users == users[:, :1]).all(axis=2)
    assert (repeated == np.isinf(U).any(axis=2))[:, 1:].all(), "unused vectors, and only they, repeat the first"
    assert config.batch_size * 3 < len(engine._data.items), "several batches, the last one short"


def plain_epoch(engine, U, V, state, number, rate, twin, attraction, confidence):
    config, key, losses = engine.config, epoch_key(engine.config.seed, number), []
    order = engine._order.draw(key)
    for first in range(0, len(order), config.batch_size):
        batch = twin.mine(engine, U, V, key, order[first : first + config.batch_size], first)
        losses.append(twin.objective(U, V, batch, config, None, confidence)[0])
        of_users, of_items = twin.gradients(U, V, batch, config, attraction, confidence)
        twin.step(U, *of_users, state["U"], rate, config.users_on_sphere, config.optimizer)
        twin.step(V, *of_items, state["V"], rate, config.items_on_sphere, config.optimizer)
    return np.concatenate(losses).mean()
