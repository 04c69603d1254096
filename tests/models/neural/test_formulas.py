"""Scores and losses of every model against their formulas in plain NumPy."""

import numpy as np
import pytest

from dpcml.models.neural import base
from dpcml.models.neural.backend import load_torch
from dpcml.training.samplers import SAMPLERS, BatchSampler


@pytest.fixture
def batch(likes):
    return next(BatchSampler(likes, SAMPLERS["uniform"], 3, 12, seed=0).epoch(0))


def tensors(*arrays):
    return [load_torch().tensor(array.astype(np.int64)) for array in arrays]


def test_scores_of_all_items_are_those_of_the_formula(model, likes, twin):
    users = np.array([0, 3, 11, 19, 3])
    every = np.tile(np.arange(likes.n_items), (5, 1))
    np.testing.assert_allclose(model.score(users), twin.scores(model, users, every), rtol=1e-4, atol=1e-4)


def test_scores_of_pairs_are_those_of_the_formula(model, batch, twin):
    users, items = batch
    found = model._score(model._loaded(), *tensors(users, items)).numpy()
    np.testing.assert_allclose(found, twin.scores(model, users, items), rtol=1e-4, atol=1e-4)


def test_loss_is_that_of_the_formula(model, batch, twin):
    users, items = batch
    model.set_params(negatives="uniform")
    found = float(model.loss(model._loaded(), *tensors(users, items)))
    assert found == pytest.approx(twin.loss(model, users, items), rel=1e-4)


def test_hard_negatives_are_those_with_the_highest_score(model, batch, twin):
    users, items = batch
    model.set_params(negatives="hard")
    if model.name == "transcf":
        model.set_params(neighbour_weight=0.0)  # it counts every negative
    s = twin.scores(model, users, items)
    hardest = np.stack([items[:, 0], items[np.arange(len(s)), 1 + s[:, 1:].argmax(axis=1)]], axis=1)
    found = float(model.loss(model._loaded(), *tensors(users, items)))
    assert found == pytest.approx(twin.loss(model, users, hardest), rel=1e-4)


def test_scores_do_not_depend_on_the_blocks(model, likes, monkeypatch):
    users = np.arange(likes.n_users)
    whole = model.score(users)
    asked = []
    score = type(model)._score
    monkeypatch.setattr(type(model), "_score", lambda self, p, u, i: asked.append(len(u)) or score(self, p, u, i))
    monkeypatch.setattr(base, "TEMPORARY_BYTES", 3 * 4 * model._floats_per_user(likes.n_items))
    np.testing.assert_allclose(model.score(users), whole, rtol=1e-5, atol=1e-5)
    assert asked == [3] * 6 + [2]
    monkeypatch.setattr(base, "TEMPORARY_BYTES", 4 * model._floats_per_user(4))  # four items of one user
    np.testing.assert_allclose(model.score(users[:2]), whole[:2], rtol=1e-5, atol=1e-5)
    assert asked[7:] == [1] * len(asked[7:])
    assert len(asked) >= 7 + 2 * 3


def test_scoring_says_how_much_it_holds(model, likes):
    """No tensor that is made on the way is larger than what the blocks are planned with."""
    torch = load_torch()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        floats = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            for one in made if isinstance(made, tuple) else (made,):
                if isinstance(one, torch.Tensor):
                    self.floats = max(self.floats, one.untyped_storage().nbytes() // 4)
            return made

    p, users = model._loaded(), torch.arange(likes.n_users)
    every = torch.arange(likes.n_items)[None]
    with torch.no_grad(), Largest() as seen:
        model._score(p, users, every)
    tables = max(values.size for values in model.to_arrays().values())  # what does not grow with the block
    assert seen.floats <= max(tables, likes.n_users * model._floats_per_user(likes.n_items))
