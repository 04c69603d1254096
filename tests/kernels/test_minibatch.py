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
    ],
)
def test_epochs_are_those_of_plain_numpy(build, twin, negatives, changes):
    engine = build(negatives, **{"batch_size": 32, "n_threads": 2, "seed": 9, **changes})
    config = engine.config
    U, V = engine.user_vectors.astype(float), engine.item_vectors.astype(float)
    state = {name: (np.zeros_like(rows), np.zeros_like(rows), np.zeros((), int)) for name, rows in (("U", U), ("V", V))}
    for number in range(2):
        loss = engine.epoch(number, 0.01)
        assert loss == pytest.approx(plain_epoch(engine, U, V, state, number, 0.01, twin), abs=1e-4)
    np.testing.assert_allclose(engine.user_vectors, U, atol=5e-4)
    np.testing.assert_allclose(engine.item_vectors, V, atol=5e-4)
    assert config.batch_size * 3 < len(engine._data.items), "several batches, the last one short"


def plain_epoch(engine, U, V, state, number, rate, twin):
    config, key, losses = engine.config, epoch_key(engine.config.seed, number), []
    order = engine._order.draw(key)
    for first in range(0, len(order), config.batch_size):
        batch = twin.mine(engine, U, V, key, order[first : first + config.batch_size], first)
        losses.append(twin.objective(U, V, batch, config)[0])
        of_users, of_items = twin.gradients(U, V, batch, config)
        twin.step(U, *of_users, state["U"], rate, config.users_on_sphere, config.optimizer)
        twin.step(V, *of_items, state["V"], rate, config.items_on_sphere, config.optimizer)
    return np.concatenate(losses).mean()
