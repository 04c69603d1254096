"""Whether claims hold: differences of two rows, paired by seed, Student's t, corrected for the number of claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from dpcml.utils.arrays import FloatArray

ALPHA = 0.05  # a difference is significant if its corrected p-value is at most this
WORDS = {"holds": "holds", "level": "is level", "fails": "does not hold"}


@dataclass(frozen=True)
class PairedGap:
    """The difference of two rows in a metric, over the seeds that both have."""

    metric: str
    mean: float
    error: float  # standard error over seeds; NaN for a single one
    p: float  # of Student's t test that the mean is 0; 1 for a single seed, which decides nothing
    n: int = 1  # seeds

    @property
    def side(self) -> int:
        """1 significantly above, -1 significantly below, 0 level."""
        return int(np.sign(self.mean)) if self.p <= ALPHA else 0


@dataclass(frozen=True)
class Verdict:
    """What the differences of two rows say about a claim."""

    name: str  # holds, level or fails
    gaps: tuple[PairedGap, ...]

    @property
    def words(self) -> str:
        """The verdict as a sentence has it."""
        return WORDS[self.name]

    @property
    def counts(self) -> str:
        """In how many metrics the row is above, level and below."""
        sides = [gap.side for gap in self.gaps]
        found = ((word, sides.count(side)) for word, side in (("above", 1), ("level", 0), ("below", -1)))
        return ", ".join(f"{word} {n}" for word, n in found if n)

    @property
    def seeds(self) -> str:
        """Over how many seeds the rows were compared."""
        n = self.gaps[0].n
        return f"over {n} seeds" if n > 1 else "one seed, which decides nothing"


def paired_gap(metric: str, differences: FloatArray) -> PairedGap:
    """Return the mean of differences, one per seed, its standard error, and its p-value.

    Examples
    --------
    >>> paired_gap("MAP", np.array([0.1, 0.2, 0.3])).p.__round__(3)
    0.074
    >>> paired_gap("MAP", np.array([0.1])).side
    0
    """
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return PairedGap(metric, mean, np.nan, 1.0)
    error = float(differences.std(ddof=1) / np.sqrt(n))
    if error <= 1e-12:  # the same in every seed, but for rounding
        return PairedGap(metric, mean, error, 1.0 if abs(mean) <= 1e-12 else 0.0, n)
    return PairedGap(metric, mean, error, float(2 * stdtr(n - 1, -abs(mean) / error)), n)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]


def judge(claims: Sequence[Sequence[PairedGap]]) -> list[Verdict]:
    """Return the verdict on each claim; in each metric, p-values are corrected for the number of claims.

    A claim *holds* if it is significantly above in most metrics and significantly below in none. It is *level* if it is
    below in none otherwise, and *fails* if it is significantly below in any.

    Parameters
    ----------
    claims
        Differences of each claim, one per metric.

    Examples
    --------
    >>> sure, unsure = paired_gap("MAP", np.array([0.11, 0.10, 0.12])), paired_gap("MAP", np.array([0.1, -0.1]))
    >>> [verdict.name for verdict in judge([[sure], [unsure]])]
    ['holds', 'level']
    """
    corrected: dict[tuple[int, str], float] = {}
    for metric in dict.fromkeys(gap.metric for gaps in claims for gap in gaps):
        tests = [(k, gap.p) for k, gaps in enumerate(claims) for gap in gaps if gap.metric == metric]
        values = holm([p for _, p in tests])
        corrected |= {(k, metric): value for (k, _), value in zip(tests, values, strict=True)}
    found = [[replace(gap, p=corrected[k, gap.metric]) for gap in gaps] for k, gaps in enumerate(claims)]
    return [Verdict(verdict_of([gap.side for gap in gaps]), tuple(gaps)) for gaps in found]


def verdict_of(sides: Sequence[int]) -> str:
    """Return the verdict that follows from where a row is above (1), level (0) and below (-1).

    Examples
    --------
    >>> verdict_of([1, 1, 0]), verdict_of([1, 0]), verdict_of([1, 1, -1])
    ('holds', 'level', 'fails')
    """
    if -1 in sides:
        return "fails"
    return "holds" if 2 * list(sides).count(1) > len(sides) else "level"
