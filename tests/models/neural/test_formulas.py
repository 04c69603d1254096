"""Scores and losses of every model against their formulas in plain NumPy."""

import numpy as np
import pytest

from dpcml.models.neural import base, history
from dpcml.models.neural.backend import hardest, hinge, load_torch
from dpcml.models.neural.history import ReadsHistory
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


@pytest.mark.parametrize("margin", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["lrml", "adacml", "hlr"])
def test_gradients_of_hard_negatives_are_those_of_all_candidates(kind, margin, small, likes, batch):
    """Only pairs with a gradient are scored with one; the gradient is that of the whole batch."""
    model = small(kind, negatives="hard", margin=margin)
    tables = model._initial(likes, np.random.default_rng(0))

    def gradients(loss):
        p = {name: load_torch().tensor(values, requires_grad=True) for name, values in tables.items()}
        found = loss({**model._known(likes, "cpu"), **p})
        found.backward()
        return float(found.detach()), {name: values.grad.numpy() for name, values in p.items()}

    users, items = tensors(*batch)
    value, found = gradients(lambda p: model.loss(p, users, items))
    expected, wanted = gradients(lambda p: hinge(hardest(model._score(p, users, items)), margin))
    assert value == pytest.approx(expected, rel=1e-5)
    for name, gradient in wanted.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-6, err_msg=name)


def test_scores_do_not_depend_on_the_blocks(model, likes, monkeypatch):
    if isinstance(model, ReadsHistory):
        return  # has blocks of its own, see below
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


@pytest.mark.parametrize("kind", ["adacml", "hlr"])
def test_scores_of_histories_do_not_depend_on_the_blocks(kind, small, likes, monkeypatch):
    model, users = small(kind).fit(likes), np.arange(likes.n_users)[::-1]
    whole, asked = model.score(users), []
    score = type(model)._score_pairs

    def counted(self, p, u, place, pairs, items):
        asked.append((len(u), place.shape[1], len(items)))
        return score(self, p, u, place, pairs, items)

    monkeypatch.setattr(type(model), "_score_pairs", counted)
    monkeypatch.setattr(history, "PAIR_FLOATS", 5 * 15 * model._floats_per_user(1) // model.history)
    monkeypatch.setattr(history, "USER_FLOATS", 3 * 5 * model._floats_per_user(1))
    np.testing.assert_allclose(model.score(users), whole, rtol=1e-5, atol=1e-5)
    assert {items for _, _, items in asked} == {5}
    assert {some for some, _, _ in asked} == {3, 2}
    assert min(longest for _, longest, _ in asked) < max(longest for _, longest, _ in asked)


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

    p = model._loaded()
    with Largest() as seen:
        model._blocks(p, np.arange(likes.n_users), likes.n_items, "cpu")
    tables = max(values.size for values in model.to_arrays().values())  # what does not grow with the block
    assert seen.floats <= max(tables, likes.n_users * model._floats_per_user(likes.n_items))


@pytest.mark.parametrize("kind", ["adacml", "hlr"])
def test_users_without_a_history_are_scored(kind, small):
    train = np.eye(6) + np.eye(6, k=1)
    train[2] = 0
    model = small(kind).fit(train)
    assert np.isfinite(model.score([2])).all(), "alone: there is no pair of items"
    np.testing.assert_allclose(model.score([2])[0], model.score([1, 2])[1], rtol=1e-4, atol=1e-5)
