"""What `fit` of a multi-interest model finds in the data: numbers of vectors, margin, and weight of popularity."""

from __future__ import annotations

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.retrieval.exact import VectorScorer
from dpcml.training.init import between_clusters, spectral_items, spectrum_of, user_clusters
from dpcml.utils.arrays import FloatArray, IntArray, every_kth

RATES = (0.75, 1.5, 3.0)  # adaptive vectors per root of a user's number of positives
MOST_VECTORS = 12  # of a user whose number of vectors is adaptive
RATE_DIM, RATE_USERS = 32, 2000  # coordinates and users by which rates are compared
GAIN = 1.25  # clearly better: below it, fewer vectors are more accurate once they are trained
POPULARITY_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2)  # tried on the validation part
POPULARITY_WEIGHT = 0.02  # without a validation part
POPULARITY_USERS = 5000  # of the validation part, on whom they are tried


def adaptive_counts(per_user: IntArray, rate: float) -> IntArray:
    """Return numbers of vectors in proportion to the root of numbers of positives, at most eight times the rate.

    Examples
    --------
    >>> adaptive_counts(np.array([1, 10, 100, 1000]), 0.75).tolist()
    [1, 2, 6, 6]
    """
    most = min(int(8 * rate), MOST_VECTORS)
    return np.clip(np.round(rate * np.sqrt(per_user)), 1, most).astype(np.int64)


def best_rate(train: Interactions, valid: Interactions, metric: str, n_threads: int | None = None) -> float:
    """Return the rate at which users get vectors for their positives, found on the validation part without training.

    It is the first of `RATES`, unless initial vectors at a larger one rank the validation part clearly better than one
    vector per user does. That is so for data with many small groups of items that belong together, such as games and
    their sequels: there a user needs a vector for every few items.
    """
    rng = np.random.default_rng(0)
    spectrum = spectrum_of(train, RATE_DIM, rng)
    items = spectral_items(spectrum, RATE_DIM, rng)
    some = every_kth(np.flatnonzero(valid.per_user), RATE_USERS)

    def value(n_vectors: IntArray) -> float:
        users = between_clusters(train, items, user_clusters(train, spectrum, n_vectors), int(n_vectors.max(initial=1)))
        return validation(VectorScorer(users, items), train, valid, metric, users=some, n_threads=n_threads)

    one = value(np.ones(train.n_users, dtype=np.int64))
    values = [value(adaptive_counts(train.per_user, rate)) for rate in RATES]
    best = int(np.argmax(values))
    return RATES[best] if values[best] > GAIN * one else RATES[0]


def repeat_first(users: FloatArray, counts: IntArray) -> FloatArray:
    """Return vectors of shape (users, C, d), in which those beyond a user's count repeat the user's first one.

    Examples
    --------
    >>> repeat_first(np.array([[[1.0], [2.0], [3.0]]]), np.array([2])).tolist()
    [[[1.0], [2.0], [1.0]]]
    """
    unused = np.arange(users.shape[1]) >= counts[:, None]
    return np.where(unused[:, :, None], users[:, :1], users) if unused.any() else users


def default_margin(train: Interactions) -> float:
    """Return a margin that falls with the likes per item: 1 for items with few, down to 0.5 for items with a hundred.

    Examples
    --------
    >>> default_margin(Interactions.from_csr(np.ones((3, 4)))), default_margin(Interactions.from_csr(np.ones((200, 4))))
    (1.0, 0.5)
    """
    return float(np.clip(5 / np.sqrt(train.n_positives / train.n_items), 0.5, 1.0))


def lift(items: FloatArray, per_item: IntArray, weight: float) -> FloatArray:
    """Return vectors with one more coordinate: the root of a weight times how much less popular the item is.

    A user whose coordinate is 0 has a squared distance that is larger by ``weight`` times the difference between the
    logarithms of the largest number of likes and the item's.

    Examples
    --------
    >>> lift(np.zeros((2, 1)), np.array([0, 3]), 0.5).round(2).tolist()
    [[0.0, 0.83], [0.0, 0.0]]
    """
    likes = np.log1p(per_item)
    height = np.sqrt(weight * (likes.max(initial=0.0) - likes))
    return np.concatenate([items, height[:, None].astype(np.float32)], axis=1)


def best_popularity(
    users: FloatArray,
    items: FloatArray,
    train: Interactions,
    valid: Interactions | None,
    metric: str,
    n_threads: int | None = None,
) -> float:
    """Return the weight of popularity that is best on the validation part, the smallest of equally good ones."""
    if valid is None:
        return POPULARITY_WEIGHT
    some = every_kth(np.flatnonzero(valid.per_user), POPULARITY_USERS)
    values = [
        validation(
            VectorScorer(users, lift(items, train.per_item, weight)),
            train,
            valid,
            metric,
            users=some,
            n_threads=n_threads,
        )
        for weight in POPULARITY_WEIGHTS
    ]
    return POPULARITY_WEIGHTS[int(np.argmax(values))]
