"""The figures that the paper published, in percent, as its tables give them."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from dpcml.errors import ParameterError, did_you_mean

METRICS = ("P@3", "R@3", "NDCG@3", "P@5", "R@5", "NDCG@5", "MAP", "MRR")
NAMES = {"ml-1m": "movielens-1m", "ml-10m": "movielens-10m"}  # where the paper's name of a set differs from ours


@cache
def overall() -> dict[tuple[str, str], dict[str, float]]:
    """Return the table of overall performance: (data set, method) to metrics, as fractions.

    Examples
    --------
    >>> overall()["steam-200k", "DPCML2"]["P@3"]
    0.2988
    """
    text = resources.files("dpcml.experiments").joinpath("published", "overall.csv").read_text(encoding="utf-8")
    ours = {theirs: name for name, theirs in NAMES.items()}
    return {
        (ours.get(row["dataset"], row["dataset"]), row["method"]): {
            name: round(float(row[name]) / 100, 6) for name in METRICS
        }
        for row in csv.DictReader(text.splitlines())
    }


def published(data: str, method: str) -> dict[str, float]:
    """Return the paper's figures for a method on a data set, as fractions.

    Examples
    --------
    >>> published("ml-1m", "DPCML2")["MRR"]
    0.4532
    """
    try:
        return overall()[data, method]
    except KeyError:
        known = [name for where, name in overall() if where == data]
        raise ParameterError(f"the paper has no {method!r} on {data!r}: {did_you_mean(method, known)}") from None
