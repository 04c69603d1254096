"""The tables of the paper, as published."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TypeAlias

from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.names import Registry

METRICS = ("P@3", "R@3", "NDCG@3", "P@5", "R@5", "NDCG@5", "MAP", "MRR")
NAMES = {"ml-1m": "movielens-1m", "ml-10m": "movielens-10m"}  # where the paper's name of a set differs from ours
TITLES = {"ml-1m": "MovieLens-1M", "ml-10m": "MovieLens-10M", "steam-200k": "Steam-200k", "citeulike-t": "CiteULike-T"}

Figures: TypeAlias = dict[str, float]  # metric -> value


@dataclass(frozen=True)
class PublishedFile:
    """A file with figures of the paper; it may lack a column for the data set or the method."""

    file: str
    key: str = "{method}"  # the name of a line, made of its columns
    data: str | None = None
    scale: float = 0.01  # the paper's percent become fractions


TABLES: Registry[tuple[PublishedFile, ...]] = Registry("table of the paper")
TABLES.add("overall", (PublishedFile("overall"),))
TABLES.add("joint", (PublishedFile("joint_accessibility"),))
TABLES.add("diversity", (PublishedFile("diversity", scale=1.0),))
TABLES.add("datasets", (PublishedFile("datasets", key="counts", scale=1.0),))
TABLES.add(
    "ablation",
    tuple(PublishedFile(f"ablation_dpcml{k}_steam200k", f"DPCML{k} {{variant}}", "steam-200k") for k in (1, 2)),
)
TABLES.add("eta", tuple(PublishedFile(f"eta_dpcml{k}_steam200k", f"DPCML{k} {{eta}}", "steam-200k") for k in (1, 2)))


@cache
def published_table(name: str) -> dict[tuple[str, str], Figures]:
    """Return one of the paper's tables: figures by data set and line, with fractions in place of percent.

    Examples
    --------
    >>> published_table("overall")["steam-200k", "DPCML2"]["P@3"]
    0.2988
    >>> published_table("eta")["steam-200k", "DPCML1 30"]["MRR"]
    0.46
    """
    ours = {theirs: mine for mine, theirs in NAMES.items()}
    found = {}
    for part in TABLES[name]:
        text = resources.files("dpcml.paper").joinpath("published", f"{part.file}.csv").read_text("utf-8")
        for row in csv.DictReader(text.splitlines()):
            data = part.data or ours.get(row["dataset"], row["dataset"])
            numbers = {key: round(float(row[key]) * part.scale, 6) for key in row if _is_number(row[key])}
            found[data, part.key.format(**row)] = numbers
    return found


def published_figures(data: str, line: str, tables: Sequence[str] = ("overall",)) -> Figures:
    """Return the paper's figures in a line of its tables on a data set; an empty dict for a set that it lacks.

    Examples
    --------
    >>> published_figures("ml-1m", "DPCML2")["MRR"]
    0.4532
    """
    for name in tables:
        if (data, line) in published_table(name):
            return published_table(name)[data, line]
    known = [other for name in tables for where, other in published_table(name) if where == data]
    if not known:
        return {}
    raise ParameterError(f"the paper has no {line!r} on {data!r}: {did_you_mean(line, known)}")


def title_of(data: str) -> str:
    """Return the name of a data set in headings.

    Examples
    --------
    >>> title_of("ml-1m"), title_of("likes.csv")
    ('MovieLens-1M', 'likes.csv')
    """
    return TITLES.get(data, data)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
