"""Confidence intervals of means over users and seeds, by a bootstrap that resamples both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpcml.utils.arrays import FloatArray

RESAMPLES = 2000
LEVEL = 0.95


def bootstrap_means(values: Mapping[str, Sequence[FloatArray]], rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return resampled means of several models; all models see the same users and seeds, so differences are paired.

    Parameters
    ----------
    values
        For each model one array of users' values per seed; NaN where a user does not count. The users are the same for
        all models and seeds.
    rng
        Source of the resamples.

    Returns
    -------
    dict
        `RESAMPLES` means for each model: the mean over resampled seeds of the mean over resampled users.

    Examples
    --------
    >>> found = bootstrap_means({"a": [np.zeros(30)], "b": [np.ones(30)]}, np.random.default_rng(0))
    >>> interval(found["b"] - found["a"])
    (1.0, 1.0)
    """
    n_seeds, n_users = np.shape(next(iter(values.values())))
    users = rng.multinomial(n_users, np.full(n_users, 1 / n_users), size=RESAMPLES).astype(np.float64)
    seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=RESAMPLES) / n_seeds  # (resamples, seeds)
    found = {}
    for name, runs in values.items():
        table = np.asarray(runs, dtype=np.float64).T  # (users, seeds)
        counted = ~np.isnan(table)
        means = users @ np.where(counted, table, 0.0) / np.maximum(users @ counted, 1e-12)  # (resamples, seeds)
        found[name] = (means * seeds).sum(axis=1)
    return found


def interval(means: FloatArray, level: float = LEVEL) -> tuple[float, float]:
    """Return the central interval that holds this share of the resampled means.

    Examples
    --------
    >>> interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high
