"""`compare`: a table of several models over seeds or splits, with paired tests over users."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import stats

from dpcml.data.interactions import as_interactions
from dpcml.data.split import Split, split_by
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.report import Report
from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.files import atomic
from dpcml.utils.text import text_table

if TYPE_CHECKING:
    import polars as pl

LOWER_IS_BETTER = ("gini",)
LEVEL = 0.05

_Splits: TypeAlias = dict[str, tuple[Array, FloatArray]]  # users and their values by split


@dataclass(frozen=True)
class Cell:
    """One model's figure for one metric."""

    mean: float  # over the seeds
    deviation: float  # standard deviation over the seeds; NaN for a single one
    p_value: float  # of the paired test against the best model, Holm-corrected; NaN for the best, or without a test
    best: bool

    def __str__(self) -> str:
        text = f"{self.mean:.4f}" + ("" if np.isnan(self.deviation) else f" ± {self.deviation:.4f}")
        mark = "*" if self.best else "=" if self.p_value >= LEVEL else " "
        return text + mark


@dataclass(frozen=True)
class Comparison:
    """Models (rows) by metrics (columns); prints as a table.

    ``*`` marks the best mean of a column, ``=`` models that do not differ significantly from it.
    """

    protocol: str
    seeds: dict[str, int]  # reports per label
    metrics: tuple[str, ...]
    cells: dict[str, dict[str, Cell]]  # label -> metric -> cell

    def __str__(self) -> str:
        rows = [[label, *(str(row[name]) for name in self.metrics)] for label, row in self.cells.items()]
        counts = sorted(set(self.seeds.values()))
        runs = "-".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
        legend = f"protocol {self.protocol}; {runs} run(s) each; * best, = not significantly different (p >= {LEVEL})"
        return text_table(["", *(f"{name} " for name in self.metrics)], rows) + "\n" + legend

    def to_frame(self) -> pl.DataFrame:
        """Return one row per model and metric."""
        import polars as pl

        rows = [
            {"label": label, "metric": name, "mean": cell.mean, "std": cell.deviation, "p_value": cell.p_value,
             "best": cell.best, "runs": self.seeds[label], "protocol": self.protocol}
            for label, row in self.cells.items()
            for name, cell in row.items()
        ]  # fmt: skip
        return pl.DataFrame(rows).fill_nan(None)

    def to_csv(self, path: str | Path) -> None:
        """Write `to_frame` as CSV."""
        with atomic(path) as temporary:
            self.to_frame().write_csv(temporary)


def compare(reports: Iterable[Report], metrics: Sequence[str] | None = None) -> Comparison:
    """Compare models over seeds: mean, standard deviation, and a paired t-test per user against the best.

    The test is on one difference per user: the mean over the splits that both models have, and over the runs on each.
    Users are the samples, because values of one user on several splits depend on each other.

    Parameters
    ----------
    reports
        Reports under one protocol; those with the same label are runs of one model with different seeds or splits.
    metrics
        Which metrics; by default all that every report has.

    Examples
    --------
    >>> def report(label, values):
    ...     values = np.array(values)
    ...     return Report(label, label, {}, "strict", "abc", (), len(values), {"P@3": values.mean()},
    ...                   users=np.arange(len(values)), per_user={"P@3": values})
    >>> print(compare([report("a", [0.1, 0.2, 0.3, 0.2]), report("b", [0.5, 0.7, 0.7, 0.6])]))
          P@3
    ----------
    a  0.2000
    b  0.6250*
    protocol strict; 1 run(s) each; * best, = not significantly different (p >= 0.05)
    """
    runs: dict[str, list[Report]] = {}
    for report in reports:
        runs.setdefault(report.label, []).append(report)
    everything = [report for group in runs.values() for report in group]
    if not everything:
        raise DataError("nothing to compare: pass at least one report")
    protocols = sorted({report.protocol for report in everything})
    if len(protocols) > 1:
        raise DataError(
            f"reports under the protocols {', '.join(protocols)} cannot be compared: evaluate all under one"
        )
    common = [name for name in everything[0].metrics if all(name in report.metrics for report in everything)]
    for name in metrics or ():
        if name not in common:
            raise ParameterError(f"metric {name!r} is not in every report: {did_you_mean(name, common)}")
    names = tuple(metrics or common)
    columns = {name: _column(runs, name) for name in names}
    cells = {label: {name: columns[name][label] for name in names} for label in runs}
    return Comparison(protocols[0], {label: len(group) for label, group in runs.items()}, names, cells)


def compare_models(
    models: Mapping[str, Any],
    data: Any,
    *,
    folds: int = 5,
    split: str | Split = "ratio",
    seed: int = 0,
    metrics: str | Sequence[str] = ("P@10", "R@10", "NDCG@10", "MAP"),
    protocol: str = "strict",
    callback: Callable[[int, int, str], object] = lambda done, total, text: None,
) -> Comparison:
    """Train models on repeated splits of the same data and compare them on the test parts.

    Each model is trained on the training part, stopped by the validation part and evaluated on the test part of each
    split, so that differences are paired by split and user; the test of `compare` takes their mean for each user.

    Parameters
    ----------
    models
        Unfitted models by the names that the table shows; they stay unfitted.
    data
        `Interactions`, a matrix or a frame: all positives.
    folds
        How many times the data is split at random, with the seeds ``seed``, ``seed + 1`` and so on. ``last``, ``time``
        and a `Split` are the same each time: they take 1.
    split, seed
        How to split, see `dpcml.data.split.split_by`, and the seed of the first split; or a `Split` of the data.
    metrics, protocol
        See `dpcml.evaluation.evaluate.evaluate`.
    callback
        Called after each training with how many are done, how many there are, and the model's name.

    Examples
    --------
    >>> from dpcml import EASE, Popularity, planted
    >>> models = {"ease": EASE(), "popularity": Popularity()}
    >>> found = compare_models(models, planted(100, 60).data, folds=3, metrics=["NDCG@10"])
    >>> found.seeds, found.cells["ease"]["NDCG@10"].best
    ({'ease': 3, 'popularity': 3}, True)
    """
    at_least("folds", folds, 1)
    if split != "ratio" and folds > 1:
        rule = split.rule if isinstance(split, Split) else split
        raise ParameterError(f"folds={folds}: the split {rule!r} is the same each time; pass folds=1 (--folds 1)")
    if not models:
        raise ParameterError("models={}: name at least one")
    everything, reports = as_interactions(data), list[Report]()
    for fold in range(folds):
        parts = split if isinstance(split, Split) else split_by(everything, split, seed + fold)
        for label, model in models.items():
            fitted = copy.deepcopy(model).fit(parts.train, parts.valid, progress=False)
            reports.append(
                evaluate(
                    fitted, parts.train, parts.test, valid=parts.valid, protocol=protocol, metrics=metrics, label=label
                )
            )
            callback(len(reports), folds * len(models), label)
    return compare(reports)


def _column(runs: dict[str, list[Report]], name: str) -> dict[str, Cell]:
    sign = -1 if name.startswith(LOWER_IS_BETTER) else 1
    values = {label: np.array([report.metrics[name] for report in group]) for label, group in runs.items()}
    means = {label: float(value.mean()) for label, value in values.items()}
    best = max(means, key=lambda label: -np.inf if np.isnan(means[label]) else sign * means[label])
    p_values = _holm({label: _paired(runs[best], group, name) for label, group in runs.items() if label != best})
    return {
        label: Cell(
            mean=means[label],
            deviation=float(value.std(ddof=1)) if len(value) > 1 else float("nan"),
            p_value=p_values.get(label, float("nan")),
            best=label == best and not np.isnan(means[label]),
        )
        for label, value in values.items()
    }


def _paired(one: Sequence[Report], other: Sequence[Report], name: str) -> float:
    """Return the p-value of a paired t-test over users, on the splits of both models; NaN without such pairs."""
    difference = _differences(_by_split(one, name), _by_split(other, name))
    if len(difference) < 2:
        return float("nan")
    if np.ptp(difference) == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(stats.ttest_1samp(difference, 0.0).pvalue)


def _differences(mine: _Splits, theirs: _Splits) -> FloatArray:
    """Return a difference per user, the mean over the splits: those of one user are no independent samples."""
    users, values = list[Array](), list[FloatArray]()
    for split in (split for split in mine if split in theirs):
        (my_users, my_values), (their_users, their_values) = mine[split], theirs[split]
        both, here, there = np.intersect1d(my_users, their_users, assume_unique=True, return_indices=True)
        users.append(both)
        values.append(my_values[here] - their_values[there])
    return _by_user(users, values)[1]


def _by_split(reports: Sequence[Report], name: str) -> _Splits:
    """Return users and their values on each split, averaged over its runs."""
    found: dict[str, list[Report]] = {}
    for report in reports:
        if name in report.per_user and report.users is not None:
            found.setdefault(report.split, []).append(report)
    return {
        split: _by_user([np.asarray(run.users) for run in runs], [run.per_user[name] for run in runs])
        for split, runs in found.items()
    }


def _by_user(users: Sequence[Array], values: Sequence[FloatArray]) -> tuple[Array, FloatArray]:
    """Return all users, each once, and the mean of their values; NaN does not count."""
    if not users:
        return np.zeros(0), np.zeros(0)
    every, numbers = np.concatenate(users), np.concatenate(values)
    known = ~np.isnan(numbers)
    ids, places = np.unique(every[known], return_inverse=True)
    return ids, np.bincount(places, weights=numbers[known]) / np.bincount(places)


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    """Return p-values corrected for several comparisons by Holm's step-down rule; NaN stays NaN."""
    known = sorted((p, label) for label, p in p_values.items() if not np.isnan(p))
    corrected = dict(p_values)
    largest = 0.0
    for place, (p, label) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - place)))
        corrected[label] = largest
    return corrected
