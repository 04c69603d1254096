"""New users and items in a trained model: old items stay where they are, only rows with something new move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.trained import check_negatives
from dpcml.retrieval.interests import distances
from dpcml.training.engine import Engine
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest

ROUNDS = 3  # of placing new items and folding new users in, in turn
SAMPLE = 1000  # old items that show how items lie relative to their users


def grow(model: MultiInterest, both: Interactions, epochs: int) -> tuple[FloatArray, FloatArray]:
    """Return vectors for known and new users and items.

    Old items keep their vectors, and so do old users without a new positive. New items start where old ones lie
    relative to the mean, over their users, of the vector that is nearest to them; new users are folded in; this is done
    in turn. Then all users with a new positive and the new items are trained for some epochs with the same objective.

    Parameters
    ----------
    model
        The trained model.
    both
        Its training data and what is new: old rows and columns come first.
    epochs
        Passes over the positives of the users with something new.

    Returns
    -------
    users, items
        Shapes (users, C, d) and (items, d).
    """
    old = model.check_fitted()
    changed = _changed(old, both)
    check_negatives(both)
    n_new = both.n_items - old.n_items
    items = np.concatenate([model.item_vectors_, np.zeros((n_new, model.item_vectors_.shape[1]), np.float32)])
    users = np.zeros((both.n_users, *model.user_vectors_.shape[1:]), dtype=np.float32)
    users[: old.n_users] = model.user_vectors_
    folding, placed = model._folding(), np.arange(both.n_items) < old.n_items
    known = np.arange(both.n_users) < old.n_users
    for _ in range(ROUNDS if n_new else 1):
        _place(items, users, known, both, old.n_items)
        placed[both.indices[known[both.rows]]] = True
        for user in range(old.n_users, both.n_users):
            liked = both.of(user)[placed[both.of(user)]]
            if len(liked):
                users[user] = folding.vectors(items, liked)
                known[user] = True
    items[~placed] = model.item_vectors_.mean(axis=0)  # nobody who is known likes them
    users[~known] = model.user_vectors_.mean(axis=0)
    if epochs and len(changed):
        _train(model, both, users, items, changed, epochs)
    return users, items


def _changed(old: Interactions, both: Interactions) -> IntArray:
    """Return the users who have a positive that the old data does not have."""
    before = np.zeros(both.n_users, dtype=np.int64)
    before[: old.n_users] = old.per_user
    return np.flatnonzero(both.per_user > before)


def _place(items: FloatArray, users: FloatArray, known: BoolArray, both: Interactions, first: int) -> None:
    """Put new items where old ones lie, relative to the mean of their users; those without a known user stay."""
    centre = users[known].mean(axis=(0, 1))
    by_item = sparse.csc_array(both.csr[known])
    owners = np.flatnonzero(known)
    old = np.flatnonzero(np.diff(by_item.indptr)[:first])
    sample = old[:: max(1, len(old) // SAMPLE)]
    means = np.stack([_nearest_mean(items[item], users, owners[_column(by_item, item)]) for item in sample.tolist()])
    near, away = _placing(items[sample], means, centre)
    for item in range(first, both.n_items):
        mine = owners[_column(by_item, item)]
        if len(mine):
            middle = items[item] if items[item].any() else users[mine].mean(axis=(0, 1))
            place = near * _nearest_mean(middle, users, mine) + away * centre
            items[item] = place / max(1.0, float(np.linalg.norm(place)))


def _nearest_mean(item: FloatArray, users: FloatArray, owners: IntArray) -> FloatArray:
    """Return the mean, over some users, of the vector that is nearest to an item."""
    vectors = users[owners]  # (users, C, d)
    apart = distances(item[None], vectors.reshape(-1, vectors.shape[2])).reshape(vectors.shape[:2])
    return np.asarray(vectors[np.arange(len(vectors)), apart.argmin(axis=1)].mean(axis=0))


def _placing(items: FloatArray, means: FloatArray, centre: FloatArray) -> tuple[float, float]:
    """Return how old items follow from the means of their users and the centre of all, by least squares.

    The mean alone would be too near to everybody: training also pushes items away from those who do not like them.
    """
    centres = np.broadcast_to(centre, means.shape)
    both = np.stack([means.ravel(), centres.ravel()], axis=1)
    near, away = np.linalg.lstsq(both, items.ravel(), rcond=None)[0]
    return float(near), float(away)


def _column(matrix: sparse.csc_array, column: int) -> IntArray:
    return np.asarray(matrix.indices[matrix.indptr[column] : matrix.indptr[column + 1]])


def _train(
    model: MultiInterest, both: Interactions, users: FloatArray, items: FloatArray, changed: IntArray, epochs: int
) -> None:
    """Train the changed users and the new items, in place; old items are put back after each epoch."""
    n_old = model.check_fitted().n_items
    mine = np.zeros(both.n_users, dtype=bool)
    mine[changed] = True
    keep = mine[both.rows]
    renumbered = np.cumsum(mine) - 1
    part = Interactions.from_codes(renumbered[both.rows[keep]], both.indices[keep], both.user_ids[changed], both.items)
    engine = Engine(part, users[changed], items, model._plan(part))
    fixed = {name: engine.state()[name][:n_old].copy() for name in ("item_vectors", "item_squares")}
    for number in range(epochs):
        engine.epoch(number, model.learning_rate * (1 - number / epochs))
        for name, values in fixed.items():
            engine.state()[name][:n_old] = values
    users[changed], found = engine.release()
    items[n_old:] = found[n_old:]
