"""The catalogue in two dimensions, for a map of items with a person's vectors among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import linalg

from dpcml.models import Recommender
from dpcml.retrieval.profile import distances
from dpcml.utils.arrays import FloatArray, IntArray

SHOWN = 4000  # items on the map: the most liked ones
NEIGHBOURS = 5  # items that say where a vector lies


@dataclass(frozen=True, eq=False)
class ItemMap:
    """Where items and vectors of users lie in two dimensions.

    Parameters
    ----------
    rows
        Positions of the items on the map, most liked first; shape (shown,).
    places
        Where each lies; shape (shown, 2), within -1 to 1.
    vectors
        The items' vectors, of shape (shown, d); None for models that have none.
    """

    rows: IntArray
    places: FloatArray
    vectors: FloatArray | None = None

    def place(self, vectors: FloatArray) -> FloatArray | None:
        """Return where vectors of users lie, amid the items next to them; None where the model has no vectors.

        Two dimensions cannot keep all distances; this keeps what matters, which items a vector is close to.

        Examples
        --------
        >>> line = np.arange(20.0)[:, None]
        >>> found = ItemMap(np.arange(20), np.hstack([line / 20, 0 * line]), line).place(np.array([[4.0]]))
        >>> found.round(2).tolist()
        [[0.2, 0.0]]
        """
        if self.vectors is None:
            return None
        near = np.argsort(distances(vectors, self.vectors), axis=1, kind="stable")[:, :NEIGHBOURS]
        return np.asarray(self.places[near].mean(axis=1))


def item_map(model: Recommender, shown: int = SHOWN) -> ItemMap:
    """Lay out the most liked items of a fitted model: by its vectors, else by who likes them.

    The axes are those along which items differ most (principal components).

    Parameters
    ----------
    model
        A fitted model; with ``item_vectors_`` its map holds vectors of users too.
    shown
        How many items at most.

    Examples
    --------
    >>> from dpcml import ItemKNN
    >>> found = item_map(ItemKNN(k=2).fit(np.kron(np.eye(2), np.ones((3, 4)))))
    >>> found.places.shape, float(abs(found.places).max()) <= 1.0
    ((8, 2), True)
    """
    train = model.check_fitted()
    rows = np.argsort(-train.per_item, kind="stable")[:shown]
    vectors = getattr(model, "item_vectors_", None)
    if vectors is None:
        return ItemMap(rows, _scaled(_by_likes(model, rows)))
    some = np.asarray(vectors[rows], dtype=np.float64)
    center = some.mean(axis=0)
    return ItemMap(rows, _scaled((some - center) @ _axes(some - center)), some)


def _axes(centered: FloatArray) -> FloatArray:
    """Return the two directions in which rows vary most; shape (d, 2), zeros where there are fewer."""
    values, directions = np.linalg.eigh(centered.T @ centered)
    axes = directions[:, ::-1][:, :2] * (values[::-1][:2] > 1e-12)
    sign = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # the same map for the same model
    axes = axes * np.where(sign == 0, 1, sign)
    return np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))


def _by_likes(model: Recommender, rows: IntArray) -> FloatArray:
    """Return items as seen by who likes them: two singular vectors of the normalised training matrix."""
    liked = model.check_fitted().csr[:, rows]
    if min(liked.shape) < 4:
        return np.zeros((len(rows), 2))
    users = 1 / np.sqrt(np.maximum(liked.sum(axis=1), 1))
    items = 1 / np.sqrt(np.maximum(liked.sum(axis=0), 1))
    normal = liked.multiply(users[:, None]).multiply(items[None, :]).tocsr().astype(np.float64)
    start = np.ones(min(normal.shape))
    _, _, right = linalg.svds(normal, k=3, v0=start, random_state=0)
    return np.ascontiguousarray(right[::-1][1:].T)  # the first one only says how much an item is liked


def _scaled(places: FloatArray) -> FloatArray:
    """Return places that fill -1 to 1 in both directions."""
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = (2 * places - low - high) / np.maximum(high - low, 1e-12)
    return np.asarray(np.clip(scaled, -1, 1))  # rounding may lead beyond
