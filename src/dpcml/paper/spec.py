"""Specs: a TOML file says which models a study runs on which data, how they are shown, and what is claimed of them."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any

from dpcml.paper.paper import METRICS
from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.text import plain

FOLDER = "results/paper"  # where the studies of the paper keep their results


@dataclass(frozen=True)
class Row:
    """One line of a table: a model with its settings on a data set."""

    data: str
    label: str
    model: str
    paper: str | None = None  # the line of the paper's table that it stands beside
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: int | None = None  # in place of the study's
    series: str = ""  # the curve that it belongs to, where a study draws some
    point: dict[str, Any] = field(default_factory=dict)  # where it lies on it: values of parameters


@dataclass(frozen=True)
class Claim:
    """A sentence that figures can contradict: one row is above others."""

    text: str
    better: str  # label of a row
    worse: tuple[str, ...]  # labels of rows
    by: str = "paper"  # whose claim: the paper's, or a ``control`` of ours
    metrics: tuple[str, ...] = ()  # that it is about; all by default


@dataclass(frozen=True)
class Spec:
    """A study."""

    name: str
    title: str
    about: str
    protocol: str = "released"
    at: tuple[int, ...] = (3, 5)
    seeds: int = 1
    rows: tuple[Row, ...] = ()
    kind: str = "table"  # how it is computed and shown, see `dpcml.paper.kinds`
    data: tuple[str, ...] = ()
    metrics: tuple[str, ...] = METRICS  # columns that are shown
    published: tuple[str, ...] = ("overall",)  # tables of the paper that rows are looked up in
    measures: tuple[str, ...] = ("accuracy",)  # what a run records, see `dpcml.paper.measures`
    scale: float = 100.0  # figures are shown times this
    digits: int = 2
    claims: tuple[Claim, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)  # what only this kind understands
    folder: str = FOLDER
    place: int = 99  # in the report
    quick: bool = False

    def seeds_of(self, row: Row) -> int:
        """Return how many seeds a row is run with."""
        return min(self.seeds, row.seeds or self.seeds)

    def sets(self) -> list[str]:
        """Return the data sets of a study, in order."""
        return list(self.data) or list(dict.fromkeys(row.data for row in self.rows))


def specs() -> list[str]:
    """Return the names of all studies.

    Examples
    --------
    >>> "overall" in specs()
    True
    """
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


def read_spec(name: str, *, quick: bool = False, data: Sequence[str] | None = None, seeds: int | None = None) -> Spec:
    """Read a study by name.

    Parameters
    ----------
    name
        See `specs`.
    quick
        With the settings of the table ``[quick]``: fewer epochs, smaller grids, one seed.
    data
        Data sets in place of the study's own.
    seeds
        Seeds per row in place of the study's own.

    Examples
    --------
    >>> read_spec("overall").protocol
    'released'
    """
    if name not in specs():
        raise ParameterError(f"unknown study {name!r}: {did_you_mean(name, specs())}")
    return parse_spec(name, _text(name), quick, data, seeds)


def parse_spec(
    name: str, text: str, quick: bool = False, data: Sequence[str] | None = None, seeds: int | None = None
) -> Spec:
    r"""Return the study that a TOML text describes; see `read_spec`.

    Examples
    --------
    >>> text = 'title = "T"\nabout = "A"\ndata = ["a", "b"]\n[[row]]\nlabel = "x {k}"\nmodel = "itemknn"\n'
    >>> [(row.data, row.label) for row in parse_spec("t", text + "grid.k = [5, 9]\non.b = { shrink = 0 }").rows]
    [('a', 'x 5'), ('a', 'x 9'), ('b', 'x 5'), ('b', 'x 9')]
    """
    found = plain(tomllib.loads(text))
    hurry = found.pop("quick", {})
    hurried = hurry if quick else {}
    rows, claims = found.pop("row", ()), found.pop("claim", ())
    changes, grid = hurried.pop("parameters", {}), hurried.pop("grid", {})
    found |= hurried | ({"seeds": seeds} if seeds else {}) | ({"data": tuple(data)} if data else {})
    _check(found, Spec, name, ("name", "rows", "claims", "quick"))
    sets = found.pop("data", ())
    made = tuple(row for one in sets or (None,) for given in rows for row in _rows(given, one, grid, changes, name))
    return Spec(
        name=name,
        rows=made,
        data=sets,
        claims=tuple(Claim(**claim) for claim in claims),
        quick=quick,
        **found,
    )


def _rows(
    given: Mapping[str, Any], data: str | None, grid: Mapping[str, Any], changes: Mapping[str, Any], study: str
) -> Iterator[Row]:
    """Return the rows of one entry on one data set: one, or one for each point of its grid."""
    base = _entry_of_overall(given["like"], study) if "like" in given else {}
    entry = {**{key: base[key] for key in ("model", "quick") if key in base}, **given}
    entry.pop("like", None)
    own, skip, hurry = entry.pop("on", {}), entry.pop("skip", ()), entry.pop("quick", {})
    points = {key: grid.get(key, values) for key, values in entry.pop("grid", {}).items()}
    _check(entry, Row, study)
    if data in skip:
        return
    entry.setdefault("data", data)
    usual = {**base.get("parameters", {}), **base.get("on", {}).get(entry["data"], {})}
    settings = {**usual, **entry.pop("parameters", {}), **own.get(entry["data"], {})}
    hurried = {key: value for key, value in changes.items() if key in _known(entry["model"])}
    hurried |= hurry if changes else {}
    fixed = entry.pop("point", {})
    for values in itertools.product(*points.values()):
        point = {**fixed, **dict(zip(points, values, strict=True))}
        said = {key: entry[key].format(**point) for key in ("label", "paper") if entry.get(key)}
        parameters = {**settings, **hurried, **point}
        yield Row(**{**entry, **said, "parameters": parameters, "point": point})


@cache
def _entry_of_overall(label: str, study: str) -> Mapping[str, Any]:
    """Return what the table of overall performance says of a row, whose model and settings other studies share."""
    entries: dict[str, Mapping[str, Any]] = {row["label"]: row for row in plain(tomllib.loads(_text("overall")))["row"]}
    if label not in entries:
        raise ParameterError(f"study {study!r}: no row {label!r} in overall: {did_you_mean(label, list(entries))}")
    return entries[label]


def _known(model: str) -> Mapping[str, Any]:
    from dpcml.models import create

    return create(model).get_params()


def _check(found: Mapping[str, Any], kind: type, study: str, forbidden: tuple[str, ...] = ()) -> None:
    known = [entry.name for entry in fields(kind) if entry.name not in forbidden]
    for key in found:
        if key not in known:
            raise ParameterError(f"study {study!r}: unknown key {key!r}: {did_you_mean(key, known)}")


def _text(name: str) -> str:
    text: str = _folder().joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return text


def _folder() -> Any:
    return resources.files("dpcml.paper").joinpath("specs")
