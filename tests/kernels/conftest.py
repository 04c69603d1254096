"""A tiny world for the training kernels, and their twin in plain Python and float64, written from the formulas.

After an epoch with learning rate 0, the engine's workspace holds everything that a kernel computed, and the first
moments hold a tenth of its gradients. So the tests check the code that trains.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.samplers import SAMPLERS

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15


@pytest.fixture(scope="session")
def world() -> Interactions:
    """40 users and 30 items; user 0 has seen all items but number 7, user 1 a single one."""
    rng = np.random.default_rng(3)
    liked = rng.random((40, 30)) < rng.uniform(0.1, 0.6, (40, 1))
    liked[0] = np.arange(30) != 7
    liked[1] = np.arange(30) == 4
    return Interactions.from_csr(liked)


@pytest.fixture(scope="session")
def weighted(world) -> Interactions:
    """The same world, with weights from 0 to thousands."""
    return replace(world, weights=np.random.default_rng(4).exponential(2, world.n_positives) ** 4)


@pytest.fixture(scope="session")
def build(world):
    """Return a function that makes an engine with vectors somewhere in the ball.

    With ``adaptive``, users in turn have 1, 2, ... n_vectors vectors.
    """

    def make(negatives="hard", *, n_vectors=3, dim=7, seed=5, data=world, adaptive=False, **changes):
        rng = np.random.default_rng(seed)
        users = rng.standard_normal((data.n_users, n_vectors, dim)) * 0.6 / np.sqrt(dim)
        if adaptive:
            unused = np.arange(n_vectors) > (np.arange(data.n_users) % n_vectors)[:, None]
            users = np.where(unused[:, :, None], users[:, :1], users)
        items = rng.standard_normal((data.n_items, dim)) * 0.6 / np.sqrt(dim)
        settings = {
            "sampler": SAMPLERS[negatives],
            "n_candidates": 4,
            "n_negatives": SAMPLERS[negatives].n_negatives(changes.get("n_candidates", 4)),
            "margin": 0.3,
            "pull": 0.0,
            "diversity": (0.25, 0.4),
            "diversity_weight": 2.0,
            "diversity_per_pair": False,
            "users_on_sphere": False,
            "items_on_sphere": False,
            "optimizer": "adam",
            "batch_size": 10_000,
            "max_user_run": 1,
            "seed": 11,
            "average": 0.0,
            "n_threads": 1,
        }
        config = TrainConfig(**{**settings, **changes})
        return Engine(data, users.astype(np.float32), items.astype(np.float32), config)

    return make


@pytest.fixture(scope="session")
def twin() -> SimpleNamespace:
    """The twins by name."""
    return SimpleNamespace(
        mix=mix, bits_of=bits_of, draw=draw, mine=mine, similar=similar, objective=objective, gradients=gradients,
        step=step, diversity=diversity, vectors=vectors, attraction=attraction,
    )  # fmt: skip


def vectors(engine):
    """Return the vectors of users and items in float64; vectors that a user does not use are infinitely far away."""
    U, V = (rows[..., : engine.dim].astype(float) for rows in (engine.user_vectors(), engine.item_vectors()))
    U[engine._unused] = np.inf
    return U, V


def attraction(data, pull):
    """Return the weight of each item's squared distance to the users who like it."""
    return pull * 50 / (50 + data.per_item)


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def bits_of(key, position, draw):
    return mix((int(key) + ((int(position) << 20) + draw + 1) * GOLDEN) & MASK)


def draw(engine, key, position, user):
    """Return the candidates of a user's positive at a position of the epoch's order."""
    data, (threshold, alias, n_items) = engine._data, engine._candidates
    seen = set(data.items[data.indptr[user] : data.indptr[user + 1]].tolist())
    unseen = [item for item in range(n_items) if item not in seen]
    found = []
    for s in range(engine.config.n_candidates):
        bits = bits_of(key, position, s)
        for _ in range(32):
            item = ((bits >> 32) * n_items) >> 32
            if len(alias) and (mix(bits ^ GOLDEN) >> 11) * 2.0**-53 >= threshold[item]:
                item = int(alias[item])
            if item not in seen:
                break
            bits = mix((bits + GOLDEN) & MASK)
        else:
            item = unseen[((mix((bits + GOLDEN) & MASK) >> 32) * len(unseen)) >> 32]
        found.append(item)
    return found


def similar(V, positive, candidates):
    """Return the chances of the candidates under two-stage sampling."""
    unit = V / np.linalg.norm(V, axis=1, keepdims=True)
    cosine = unit[candidates] @ unit[positive]
    weight = np.where(cosine > 0, np.maximum(1 - cosine**2, 1e-6) ** (-(V.shape[1] - 3) / 2), 0)
    return weight / weight.sum() if weight.any() else np.full(len(candidates), 1 / len(candidates))


def mine(engine, U, V, key, order, first=0):
    """Return one row (user, positive item, negatives) for each positive of a batch."""
    batch = []
    for b, (user, item) in enumerate(order.tolist()):
        found = draw(engine, key, first + b, user)
        if engine.config.sampler.choice == 1:
            distance = ((U[user][:, None] - V[found]) ** 2).sum(axis=2).min(axis=0)
            found = [found[int(distance.argmin())]]
        elif engine.config.sampler.choice == 3:
            distance = ((U[user][:, None] - V[found]) ** 2).sum(axis=2).min(axis=0)
            found = [found[place] for place in np.argsort(distance, kind="stable")[: engine.config.n_negatives]]
        elif engine.config.sampler.choice == 2:
            chance = (bits_of(key, first + b, 1 << 19) >> 11) * 2.0**-53
            place = int((np.cumsum(similar(V, item, found)) <= chance).sum())
            found = [found[min(place, len(found) - 1)]]
        batch.append((user, item, found))
    return batch


def diversity(vectors):
    """Return half the squared distance of each unordered pair of the vectors that are used."""
    vectors = vectors[np.isfinite(vectors).all(axis=1)]
    a, b = np.tril_indices(len(vectors), -1)
    return ((vectors[a] - vectors[b]) ** 2).sum(axis=1) / 2


def share_of(config):
    """Return the weight of each negative: the hardest ones share the weight of one."""
    return 1 / config.n_negatives if config.sampler.choice == 3 else 1


def objective(U, V, batch, config, weights=None, confidence=None):
    """Return the hinge of every positive, and the whole objective of a batch; ``weights`` attract positives.

    All that a positive adds is multiplied by its ``confidence``, of shape (users, items).
    """
    hinges, attracted = [], 0.0
    for user, item, found in batch:
        positive = ((U[user] - V[item]) ** 2).sum(axis=1).min()
        negative = ((U[user][:, None] - V[found]) ** 2).sum(axis=2).min(axis=0)
        factor = 1 if confidence is None else confidence[user, item]
        hinges.append(factor * share_of(config) * np.maximum(config.margin + positive - negative, 0).sum())
        attracted += 0 if weights is None else factor * weights[item] * positive
    total = sum(hinges) + attracted
    for user in {user for user, _, _ in batch if len(diversity(U[user]))}:
        halves = diversity(U[user])
        spread = halves if config.diversity_per_pair else halves.mean(keepdims=True)
        low, high = config.diversity
        total += config.diversity_weight * (np.maximum(low - spread, 0) + np.maximum(spread - high, 0)).mean()
    return np.array(hinges), total


def gradients(U, V, batch, config, weights=None, confidence=None):
    """Return the gradients of the objective, and which rows of U and V are touched."""
    of_users, of_items = np.zeros_like(U), np.zeros_like(V)
    users_touched, items_touched = np.zeros(U.shape[:2], bool), np.zeros(len(V), bool)

    def pull(user, item, weight):
        c = ((U[user] - V[item]) ** 2).sum(axis=1).argmin()
        of_users[user, c] += 2 * weight * (U[user, c] - V[item])
        of_items[item] -= 2 * weight * (U[user, c] - V[item])
        users_touched[user, c] = items_touched[item] = True

    for user, item, found in batch:
        positive = ((U[user] - V[item]) ** 2).sum(axis=1).min()
        factor = 1 if confidence is None else confidence[user, item]
        if weights is not None and weights[item]:
            pull(user, item, factor * weights[item])
        for negative in found:
            if config.margin + positive - ((U[user] - V[negative]) ** 2).sum(axis=1).min() > 0:
                pull(user, item, factor * share_of(config))
                pull(user, negative, -factor * share_of(config))
    low, high = config.diversity
    for user in {user for user, _, _ in batch if len(diversity(U[user]))}:
        pairs = [(a, b) for a in range(np.isfinite(U[user]).all(axis=1).sum()) for b in range(a)]
        halves = diversity(U[user])
        spread = halves if config.diversity_per_pair else np.full(len(halves), halves.mean())
        for (a, b), value in zip(pairs, spread, strict=True):
            sign = config.diversity_weight / len(pairs) * (float(value > high) - float(value < low))
            if sign:
                of_users[user, a] += sign * (U[user, a] - U[user, b])
                of_users[user, b] -= sign * (U[user, a] - U[user, b])
                users_touched[user, [a, b]] = True
    return (of_users, users_touched), (of_items, items_touched)


def step(rows, gradient, touched, state, rate, on_sphere, optimizer):
    """Take one step on the touched rows, in place; ``state`` holds (first, second, number of steps so far)."""
    first, second, steps = state
    g = gradient[touched]
    steps += 1
    if optimizer == "adam":
        first[touched] = 0.9 * first[touched] + 0.1 * g
        second[touched] = 0.999 * second[touched] + 0.001 * g**2
        k = int(steps)
        mean, square = first[touched] / (1 - 0.9**k), second[touched] / (1 - 0.999**k)
        rows[touched] -= rate * mean / (np.sqrt(square) + 1e-8)
    else:
        second[touched] += g**2
        rows[touched] -= rate * g / (np.sqrt(second[touched]) + 1e-10)
    norm = np.linalg.norm(rows[touched], axis=-1, keepdims=True)
    rows[touched] /= norm if on_sphere else np.maximum(norm, 1)
