"""Small models of every kind, and their scores and losses as the papers write them, in plain NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from dpcml import Interactions
from dpcml.models import MODELS
from dpcml.models.neural.history import histories

SMALL = {
    "gmf": {},
    "mlp": {"layers": (7, 4, 3)},
    "neumf": {"layers": (7, 3)},
    "m2f": {"n_vectors": 3, "negative_weight": 0.5, "diversity": (2.0, 3.0), "diversity_weight": 0.7},
    "mgmf": {"n_vectors": 3},
    "transcf": {"neighbour_weight": 0.3, "distance_weight": 0.2},
    "lrml": {"n_slots": 3},
    "adacml": {"history": 4},
    "hlr": {"n_slots": 3, "history": 4},
}
SHARED = {"dim": 5, "n_candidates": 3, "batch_size": 16, "epochs": 4, "validate_every": 2, "n_threads": 1}


@pytest.fixture(scope="session")
def small():
    """Return a function that makes a small model by name."""
    return lambda name, **changes: MODELS[name](**{**SHARED, **SMALL[name], **changes})


@pytest.fixture(params=list(SMALL))
def name(request):
    return request.param


@pytest.fixture(scope="session")
def likes() -> Interactions:
    """Two kinds of users, 20 in all, and 15 items, of which nobody likes the last; one user has one item."""
    rng = np.random.default_rng(1)
    liked = rng.random((20, 15)) < 0.7
    liked[:10, 8:] = liked[10:, :7] = liked[:, 14] = False
    liked[3], liked[3, 2] = False, True
    return Interactions.from_csr(liked)


@pytest.fixture(scope="session")
def parts(likes):
    return likes.split((0.6, 0.2, 0.2), 0)


@pytest.fixture
def model(name, small, likes):
    """A model that looks fitted, with random numbers in all tables."""
    one = small(name)
    rng = np.random.default_rng(2)
    for table, about in one._tables(likes.n_users, likes.n_items).items():
        setattr(one, table, rng.standard_normal(about.shape).astype(np.float32))
    one.train_ = likes
    return one


@pytest.fixture(scope="session")
def twin():
    """Return ``scores(model, users, items)`` and ``loss(model, users, items)`` in plain NumPy."""
    return SimpleNamespace(scores=scores, loss=loss)


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    weights = np.exp(x - np.max(x))
    return weights / weights.sum()


def table(model, name):
    return getattr(model, name).astype(np.float64)


def gmf(model, u, i):
    both = table(model, "user_vectors_")[u] * table(model, "item_vectors_")[i]
    return table(model, "weights_") @ both + table(model, "item_biases_")[i, 0]


def tower(model, u, i, prefix=""):
    first = np.concatenate([table(model, f"{prefix}layer_1_users_"), table(model, f"{prefix}layer_1_items_")])
    both = np.concatenate([table(model, f"{prefix}user_vectors_")[u], table(model, f"{prefix}item_vectors_")[i]])
    layer = relu(both @ first + table(model, f"{prefix}layer_1_biases_"))
    for k in range(2, len(model.layers) + 1):
        weights, biases = (table(model, f"{prefix}layer_{k}_{part}_") for part in ("weights", "biases"))
        layer = relu(layer @ weights + biases)
    return layer


def mlp(model, u, i):
    return tower(model, u, i) @ table(model, "output_weights_") + table(model, "item_biases_")[i, 0]


def neumf(model, u, i):
    product = table(model, "gmf_user_vectors_")[u] * table(model, "gmf_item_vectors_")[i]
    last = np.concatenate([product, tower(model, u, i, "mlp_")])
    output = np.concatenate([table(model, "gmf_weights_"), table(model, "mlp_output_weights_")])
    return last @ output + table(model, "item_biases_")[i, 0]


def m2f(model, u, i):
    return max(vector @ table(model, "item_vectors_")[i] for vector in table(model, "user_vectors_")[u])


def mgmf(model, u, i):
    item = table(model, "item_vectors_")[i]
    best = max(table(model, "weights_") @ (vector * item) for vector in table(model, "user_vectors_")[u])
    return best + table(model, "item_biases_")[i, 0]


def neighbours(model, u, i):
    """Return the mean of the user's items, and that of the item's users."""
    liked = model.train_.csr.toarray() > 0
    users, items = table(model, "user_vectors_"), table(model, "item_vectors_")
    of_user = items[liked[u]].mean(axis=0) if liked[u].any() else np.zeros(model.dim)
    of_item = users[liked[:, i]].mean(axis=0) if liked[:, i].any() else np.zeros(model.dim)
    return of_user, of_item


def translated(model, u, i, relation):
    return -((table(model, "user_vectors_")[u] + relation - table(model, "item_vectors_")[i]) ** 2).sum()


def transcf(model, u, i):
    of_user, of_item = neighbours(model, u, i)
    return translated(model, u, i, of_user * of_item)


def read(keys, memory, one, other):
    return softmax(keys @ (one * other)) @ memory


def lrml(model, u, i):
    user, item = table(model, "user_vectors_")[u], table(model, "item_vectors_")[i]
    return translated(model, u, i, read(table(model, "keys_"), table(model, "memory_"), user, item))


def past(model, u, i):
    return [j for j in histories(model.train_, model.history, model.random_state)[u] if j >= 0 and j != i]


def adacml(model, u, i):
    items = table(model, "item_vectors_")
    memory = items[past(model, u, i)]
    return translated(model, u, i, softmax(memory @ items[i]) @ memory if len(memory) else 0)


def hlr(model, u, i):
    user, items = table(model, "user_vectors_")[u], table(model, "item_vectors_")
    relations = [read(table(model, "user_keys_"), table(model, "user_memory_"), user, items[i])]
    for j in past(model, u, i):
        relations.append(read(table(model, "item_keys_"), table(model, "item_memory_"), items[j], items[i]))
    relations = np.array(relations)
    return translated(model, u, i, softmax(relations @ user) @ relations)


TWINS = {one.__name__: one for one in (gmf, mlp, neumf, m2f, mgmf, transcf, lrml, adacml, hlr)}


def scores(model, users, items):
    """Return the scores of users (B,) and their items (B, K)."""
    twin = TWINS[model.name]
    return np.array([[twin(model, u, i) for i in row] for u, row in zip(users, items, strict=True)])


def cross_entropy(s):
    liked, not_liked = -np.logaddexp(0, -s), -np.logaddexp(0, s)  # log sigmoid(s), log(1 - sigmoid(s))
    return -(liked[:, 0] + not_liked[:, 1:].sum(axis=1)).mean()


def hinge(s, margin):
    return np.maximum(0, margin - s[:, :1] + s[:, 1:]).sum(axis=1).mean()


def diversity(vectors, lower, upper):
    """Return the diversity hinge of one user's vectors (C, d)."""
    n = len(vectors)
    delta = sum(((a - b) ** 2).sum() for a in vectors for b in vectors) / (2 * n * (n - 1))
    return max(0, lower - delta) + max(0, delta - upper)


def loss(model, users, items):
    """Return the mean loss of a batch with uniform negatives."""
    s = scores(model, users, items)
    if model.name == "m2f":
        error = ((1 - s[:, 0]) ** 2 + model.negative_weight * (s[:, 1:] ** 2).sum(axis=1)).mean()
        present = [diversity(table(model, "user_vectors_")[u], *model.diversity) for u in np.unique(users)]
        return error + model.diversity_weight * np.mean(present)
    if not hasattr(model, "margin"):
        return cross_entropy(s)
    if model.name != "transcf":
        return hinge(s, model.margin)
    apart = []
    for u, row in zip(users, items, strict=True):
        apart.append(((table(model, "user_vectors_")[u] - neighbours(model, u, 0)[0]) ** 2).sum())
        apart[-1] += sum(((table(model, "item_vectors_")[i] - neighbours(model, u, i)[1]) ** 2).sum() for i in row)
    return hinge(s, model.margin) + model.neighbour_weight * np.mean(apart) - model.distance_weight * s[:, 0].mean()
