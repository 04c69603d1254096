"""Users and items that come after the training: folded in, or learned with the old item vectors fixed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.retrieval.fold_in import RATE, FoldIn
from dpcml.retrieval.profile import distances
from dpcml.training.engine import Engine, objective_of
from dpcml.training.samplers import attraction, check_negatives, popularity_weights
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.threads import over_rows

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest

DENSE = 0.05  # share of positives above which fold-in takes smaller steps: negatives are often unseen positives
ROUNDS = 3  # alternations of placing new items and folding in new users
SAMPLE = 1000  # old items from which the placement of items relative to their users is estimated


def fold_in_solver(model: MultiInterest) -> FoldIn:
    """Return the solver for vectors of new users, with the objective of training."""
    train = model.check_fitted()
    config = model.train_config(train)
    exponent, density = config.sampler.exponent, train.n_positives / (train.n_users * train.n_items)
    return FoldIn(
        objective_of(config, model.trained_dim),
        config.n_candidates,
        config.n_negatives,
        config.sampler.choice,
        attraction(train.per_item, config.pull),
        popularity_weights(train.per_item, exponent) if exponent else None,
        config.seed,
        rate=RATE * min(1.0, DENSE / density),
    )


def fold_users(model: MultiInterest, solver: FoldIn, items: FloatArray, likes: sparse.csr_array) -> FloatArray:
    """Return vectors of new users for their likes, of shape (users, items); shape (users, C, d).

    Parameters
    ----------
    model
        The trained model.
    solver
        From `fold_in_solver`.
    items
        Trained coordinates of the items' vectors.
    likes
        Ones of shape (users, items).
    """
    found = np.zeros((likes.shape[0], *model.user_vectors_.shape[1:]), dtype=np.float32)

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            liked = likes.indices[likes.indptr[k] : likes.indptr[k + 1]]
            found[k, :, : items.shape[1]] = _fold_user(model, solver, items, liked)

    over_rows(work, len(found))
    return found


def _fold_user(model: MultiInterest, solver: FoldIn, items: FloatArray, liked: IntArray) -> FloatArray:
    """Return the trained coordinates of a new user's vectors; shape (C, coordinates)."""
    most = model.user_vectors_.shape[1]
    count = min(int(model.vector_counts(np.array([len(liked)]))[0]), most)
    return np.asarray(solver.vectors(items, liked, count)[np.arange(most) * (np.arange(most) < count)])


def grow(model: MultiInterest, both: Interactions, epochs: int) -> tuple[FloatArray, FloatArray]:
    """Return vectors for known and new users and items.

    Old items keep their vectors, and so do old users without a new positive. A new item starts near the mean, over its
    users, of the user vector nearest to it; new users are folded in; both steps alternate. Then all users with a new
    positive and the new items are trained for some epochs with the same objective.

    Parameters
    ----------
    model
        The trained model.
    both
        Old and new training data; old rows and columns come first.
    epochs
        Passes over the positives of the users with a new positive.

    Returns
    -------
    users, items
        Shapes (users, C, d) and (items, d), without the coordinate of popularity.
    """
    old = model.check_fitted()
    changed = _changed(old, both)
    check_negatives(both)
    n_new = both.n_items - old.n_items
    trained = model.trained_items()
    items = np.concatenate([trained, np.zeros((n_new, trained.shape[1]), np.float32)])
    users = np.zeros((both.n_users, model.user_vectors_.shape[1], trained.shape[1]), dtype=np.float32)
    users[: old.n_users] = model.user_vectors_[:, :, : trained.shape[1]]
    solver = replace(fold_in_solver(model), attraction=attraction(both.per_item, model.pull))  # new items attract, too
    placed = np.arange(both.n_items) < old.n_items
    known = np.arange(both.n_users) < old.n_users
    for _ in range(ROUNDS if n_new else 1):
        _place(items, users, known, both, old.n_items)
        placed[both.indices[known[both.rows]]] = True
        for user in range(old.n_users, both.n_users):
            liked = both.of(user)[placed[both.of(user)]]
            if len(liked):
                users[user] = _fold_user(model, solver, items, liked)
                known[user] = True
    items[~placed] = trained.mean(axis=0)  # no known user likes them
    users[~known] = users[: old.n_users].mean(axis=0)
    if epochs and len(changed):
        _train(model, both, users, items, changed, epochs)
    return users, items


def _changed(old: Interactions, both: Interactions) -> IntArray:
    """Return the rows of users with a positive that is not in the old data."""
    before = np.zeros(both.n_users, dtype=np.int64)
    before[: old.n_users] = old.per_user
    return np.flatnonzero(both.per_user > before)


def _place(items: FloatArray, users: FloatArray, known: BoolArray, both: Interactions, first: int) -> None:
    """Set the vectors of new items from the vectors of their users; items without a known user stay as they are."""
    centre = users[known].mean(axis=(0, 1))
    by_item = sparse.csc_array(both.csr[known])
    fans = np.flatnonzero(known)
    old = np.flatnonzero(np.diff(by_item.indptr)[:first])
    sample = old[:: max(1, len(old) // SAMPLE)]
    means = np.stack([_nearest_mean(items[item], users, fans[_column(by_item, item)]) for item in sample.tolist()])
    near, away = _placing(items[sample], means, centre)
    for item in range(first, both.n_items):
        own = fans[_column(by_item, item)]
        if len(own):
            middle = items[item] if items[item].any() else users[own].mean(axis=(0, 1))
            place = near * _nearest_mean(middle, users, own) + away * centre
            items[item] = place / max(1.0, float(np.linalg.norm(place)))


def _nearest_mean(item: FloatArray, users: FloatArray, fans: IntArray) -> FloatArray:
    """Return the mean, over some users, of the vector that is nearest to an item."""
    vectors = users[fans]  # (users, C, d)
    apart = distances(item[None], vectors.reshape(-1, vectors.shape[2])).reshape(vectors.shape[:2])
    return np.asarray(vectors[np.arange(len(vectors)), apart.argmin(axis=1)].mean(axis=0))


def _placing(items: FloatArray, means: FloatArray, centre: FloatArray) -> tuple[float, float]:
    """Return weights of the users' mean and of the centre of all users that reproduce old items, by least squares.

    The mean alone would be too near to all users: training also pushes items away from users who do not like them.
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
    """Train the changed users and the new items in place; old items are reset after each epoch."""
    n_old = model.check_fitted().n_items
    mine = np.zeros(both.n_users, dtype=bool)
    mine[changed] = True
    keep = mine[both.rows]
    renumbered = np.cumsum(mine) - 1
    part = Interactions.from_codes(
        renumbered[both.rows[keep]],
        both.indices[keep],
        both.user_ids[changed],
        both.items,
        weights=None if both.weights is None else both.weights[keep],
    )
    engine = Engine(part, users[changed], items, model.train_config(part))
    fixed = {name: engine.state()[name][:n_old].copy() for name in ("item_vectors", "item_squares")}
    for number in range(epochs):
        engine.epoch(number, model.learning_rate * (1 - number / epochs))
        for name, values in fixed.items():
            engine.state()[name][:n_old] = values
    users[changed], found = engine.release()
    items[n_old:] = found[n_old:]
