"""Items in two dimensions, for a map that shows them with the interests of a user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import linalg
from scipy.spatial.distance import cdist

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import FloatArray, IntArray

N_ITEMS = 4000  # items on a map: the most popular ones
NEIGHBOURS = 5  # items that determine the place of a vector


@dataclass(frozen=True, eq=False)
class ItemMap:
    """Items in two dimensions.

    Parameters
    ----------
    rows
        Internal indices of the items on the map, most popular first; shape (n,).
    places
        Coordinates of each item from -1 to 1; shape (n, 2).
    vectors
        Vectors of the items, shape (n, d); None for models without item vectors.
    """

    rows: IntArray
    places: FloatArray
    vectors: FloatArray | None = None

    def place(self, vectors: FloatArray) -> FloatArray | None:
        """Return the places of user vectors: the mean over their nearest items; None without item vectors.

        Two dimensions cannot keep all distances. The mean keeps the ones that matter: which items a vector is close to.

        Examples
        --------
        >>> line = np.arange(20.0)[:, None]
        >>> found = ItemMap(np.arange(20), np.hstack([line / 20, 0 * line]), line).place(np.array([[4.0]]))
        >>> found.round(2).tolist()
        [[0.2, 0.0]]
        """
        if self.vectors is None:
            return None
        nearest = np.argsort(cdist(vectors, self.vectors, "sqeuclidean"), axis=1, kind="stable")[:, :NEIGHBOURS]
        return np.asarray(self.places[nearest].mean(axis=1))


def project_items(train: Interactions, item_vectors: FloatArray | None = None, n_items: int = N_ITEMS) -> ItemMap:
    """Return the most popular items in two dimensions.

    With item vectors the axes are their first two principal components. Without them the axes come from a singular
    value decomposition of the normalised interaction matrix.

    Parameters
    ----------
    train
        The interactions that the model was trained on.
    item_vectors
        One vector per item; shape (items, d).
    n_items
        Maximum number of items on the map.

    Examples
    --------
    >>> found = project_items(Interactions.from_csr(np.kron(np.eye(2), np.ones((3, 4)))))
    >>> found.places.shape, float(abs(found.places).max()) <= 1.0
    ((8, 2), True)
    """
    rows = np.argsort(-train.per_item, kind="stable")[:n_items]
    if item_vectors is None:
        return ItemMap(rows, _scaled(_singular_vectors(train, rows)))
    vectors = np.asarray(item_vectors[rows], dtype=np.float64)
    centered = vectors - vectors.mean(axis=0)
    return ItemMap(rows, _scaled(centered @ _principal_axes(centered)), vectors)


def _principal_axes(centered: FloatArray) -> FloatArray:
    """Return the two directions of largest variance; shape (d, 2), zeros if there are fewer."""
    values, directions = np.linalg.eigh(centered.T @ centered)
    axes = directions[:, ::-1][:, :2] * (values[::-1][:2] > 1e-12)
    sign = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # eigenvectors have no sign: fix it
    axes = axes * np.where(sign == 0, 1, sign)
    return np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))


def _singular_vectors(train: Interactions, rows: IntArray) -> FloatArray:
    """Return the second and third right singular vectors of the normalised interaction matrix; shape (n, 2)."""
    likes = train.csr[:, rows]
    if min(likes.shape) < 4:
        return np.zeros((len(rows), 2))
    users = 1 / np.sqrt(np.maximum(likes.sum(axis=1), 1))
    items = 1 / np.sqrt(np.maximum(likes.sum(axis=0), 1))
    normalised = likes.multiply(users[:, None]).multiply(items[None, :]).tocsr().astype(np.float64)
    start = np.ones(min(normalised.shape))
    _, _, right = linalg.svds(normalised, k=3, v0=start, random_state=0)
    return np.ascontiguousarray(right[::-1][1:].T)  # the first singular vector is popularity


def _scaled(places: FloatArray) -> FloatArray:
    """Return places scaled to fill -1 to 1 in both dimensions."""
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = (2 * places - low - high) / np.maximum(high - low, 1e-12)
    return np.asarray(np.clip(scaled, -1, 1))  # rounding may exceed the range
