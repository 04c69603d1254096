"""Items in two dimensions, for a map that shows them with the interests of a user."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

import numpy as np
from scipy import stats
from scipy.sparse import linalg
from scipy.spatial.distance import cdist

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.packages import installed

N_ITEMS = 4000  # items on a map: the most popular ones
UMAP_FROM, UMAP_TO = 500, 20_000  # items: fewer are laid out as well by principal components, more take minutes
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
    """Return the most popular items in two dimensions, in which popularity has no part.

    Popularity is the largest direction of most models; on a map it would hide what items are about. It is taken out of
    the vectors, whose directions are then laid out by UMAP where it is installed (the extra ``map``) and there are
    neither few nor very many items, else by their first two principal components. Without vectors the axes come from a
    singular value decomposition of the normalised interaction matrix.

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
    likes = train.per_item
    rows = np.argsort(-likes, kind="stable")[:n_items]
    if item_vectors is None:
        places, vectors = _singular_vectors(train, rows), None
    else:
        vectors = np.asarray(item_vectors[rows], dtype=np.float64)
        directions = without_popularity(vectors, likes[rows])
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
        umap = installed("umap") if UMAP_FROM <= len(rows) <= UMAP_TO else None
        places = directions @ _principal_axes(directions) if umap is None else _by_umap(umap, directions)
    return ItemMap(rows, _scaled(without_popularity(places, likes[rows])), vectors)


def takes_long(n_items: int) -> bool:
    """Return whether `project_items` lays out so many items by UMAP, which compiles for many seconds at first.

    Examples
    --------
    >>> takes_long(40)
    False
    """
    return UMAP_FROM <= min(n_items, N_ITEMS) <= UMAP_TO and find_spec("umap") is not None


def without_popularity(values: FloatArray, likes: IntArray) -> FloatArray:
    """Return values of items, shape (items, d), less what their numbers of likes predict of them by least squares.

    The predictors are a cubic of the rank by likes, and the logarithm of the likes.

    Examples
    --------
    >>> likes = np.array([1, 2, 4, 8, 16, 32, 64])
    >>> bool(np.allclose(without_popularity(np.log1p(likes)[:, None], likes), 0))
    True
    """
    rank = stats.rankdata(likes) / max(len(likes), 1) - 0.5
    predictors = np.stack([np.ones(len(likes)), rank, rank**2, rank**3, np.log1p(likes)], axis=1)
    residual = values - predictors @ np.linalg.lstsq(predictors, values, rcond=None)[0]
    noise = np.abs(residual) <= 1e-9 * np.abs(values).max(axis=0, initial=0.0)  # rounding, which scaling would magnify
    return np.where(noise.all(axis=0), 0.0, residual)


def _by_umap(umap: ModuleType, vectors: FloatArray) -> FloatArray:
    """Return a layout that keeps neighbours together, the same for the same vectors; shape (n, 2)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread
        return np.asarray(umap.UMAP(random_state=0, n_jobs=1).fit_transform(vectors), dtype=np.float64)


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
