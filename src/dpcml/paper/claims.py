"""Whether a claim holds in our runs: sentences computed from the figures, never typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpcml.paper.document import Note
from dpcml.paper.spec import Claim
from dpcml.utils.arrays import FloatArray

OWNERS = {"paper": "The paper says that", "control": "A control of ours:"}


@dataclass(frozen=True)
class Gap:
    """By how much one row is above another in a metric, over the seeds that both have."""

    metric: str
    mean: float
    error: float  # standard error over seeds; NaN for a single one

    @property
    def side(self) -> int:
        """1 above, -1 below, 0 level: within two standard errors, where there are several seeds."""
        if self.mean == 0 or (not np.isnan(self.error) and abs(self.mean) <= 2 * self.error):
            return 0
        return 1 if self.mean > 0 else -1


def gaps(done: pl.DataFrame, data: str, better: str, worse: str, metrics: Sequence[str]) -> list[Gap]:
    """Return the gaps of two rows, paired by seed: a seed decides the split, so both saw the same one.

    Examples
    --------
    >>> done = pl.DataFrame({"data": ["d"] * 2, "label": ["a", "b"], "seed": [0, 0], "MAP": [0.25, 0.5]})
    >>> gaps(done, "d", "a", "b", ["MAP"])[0].mean
    -0.25
    """
    one, other = (_by_seed(done, data, label) for label in (better, worse))
    seeds = sorted(set(one) & set(other))
    found = []
    for metric in metrics if seeds else ():
        differences: FloatArray = np.array([one[seed][metric] - other[seed][metric] for seed in seeds], dtype=float)
        error = differences.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.nan
        found.append(Gap(metric, float(differences.mean()), float(error)))
    return found


def judge(
    claim: Claim, done: pl.DataFrame, data: str, metrics: Sequence[str], scale: float = 100.0, digits: int = 2
) -> list[Note]:
    """Return a note for each row that the claim puts below another: whether it is, in how many metrics, by how much."""
    notes = []
    for worse in claim.worse:
        found = gaps(done, data, claim.better, worse, claim.metrics or metrics)
        if not found:
            continue
        above, below = (sum(gap.side == side for gap in found) for side in (1, -1))
        level = len(found) - above - below
        verdict, words = _verdict(above, below, len(found))
        first = found[0]
        spread = "" if np.isnan(first.error) else f" ± {2 * scale * first.error:.{digits}f}"
        counts = ", ".join(f"{word} {n}" for word, n in (("above", above), ("level", level), ("below", below)) if n)
        notes.append(
            Note(
                f"{OWNERS[claim.by]} {claim.text}. In our runs this **{words}** for *{claim.better}* against *{worse}*:"
                f" of {len(found)} metrics {counts}; {first.metric} {scale * first.mean:+.{digits}f}{spread}.",
                verdict,
                claim=True,
            )
        )
    return notes


def _verdict(above: int, below: int, n: int) -> tuple[str, str]:
    if above == n:
        return "holds", "holds"
    if above and not below:
        return "holds", "holds where rows differ"
    if above:
        return "partly", "holds in part"
    return "fails", "does not hold"


def _by_seed(done: pl.DataFrame, data: str, label: str) -> dict[int, dict[str, float]]:
    if not done.height:
        return {}
    same = done.filter((pl.col("data") == data) & (pl.col("label") == label))
    return {int(line["seed"]): line for line in same.iter_rows(named=True)}
