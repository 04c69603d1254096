"""Specs of studies: a TOML file names the models and data sets of a study, how it is shown, and what is claimed."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from dpcml.models.presets import default_params
from dpcml.paper.published import METRICS
from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.text import plain

FOLDER = "results/paper"  # where the studies of the paper keep their results
TUNING = "results/tuning"  # where their searches keep trials and what they have found
BEST = "best.toml"


# Keys of an entry beside the fields of its rows: what it has from a row of the overall table or from a search, and
# what depends on data sets.
ENTRY_KEYS = {"like", "search", "bound", "as_wide_as", "on", "skip", "quick", "grid"}


@dataclass(frozen=True)
class StudyRow:
    """One line of a table: a model with its parameters on a data set."""

    data: str
    label: str
    model: str
    paper: str | None = None  # the line of the paper's table that it is compared with
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: int | None = None  # in place of the study's
    series: str = ""  # the curve that it belongs to, in a study with curves
    point: dict[str, Any] = field(default_factory=dict)  # its place on the curve: values of parameters


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
    """A study.

    It is parsed once; `Spec.on` gives the same study on other data sets.
    """

    name: str
    title: str
    about: str
    protocol: str = "released"
    k: tuple[int, ...] = (3, 5)  # cut-offs of the metrics
    seeds: int = 1
    entries: tuple[Mapping[str, Any], ...] = ()  # the tables ``[[row]]`` of the file
    study_type: str = "table"  # how it is computed and shown, see `dpcml.paper.study_types`
    data: tuple[str, ...] = ()
    metrics: tuple[str, ...] = METRICS  # columns that are shown
    published: tuple[str, ...] = ("overall",)  # tables of the paper that rows are looked up in
    measures: tuple[str, ...] = ("accuracy",)  # what a run records, see `dpcml.paper.runs.MEASURES`
    split: str = "ratio"  # see `dpcml.data.split.split_by`; ``released`` is the same for every seed
    scale: float = 100.0  # figures are shown times this
    digits: int = 2
    claims: tuple[Claim, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)  # what only this type of study has
    folder: str = FOLDER
    tuning: str = TUNING  # folder of the searches; empty: rows have the defaults of their models
    place: int = 99  # in the report
    quick: bool = False
    changes: dict[str, Any] = field(default_factory=dict)  # parameters of a quick run, of models that have them
    grid: dict[str, Any] = field(default_factory=dict)  # values of parameters in a quick run

    @cached_property
    def rows(self) -> tuple[StudyRow, ...]:
        """The rows of the study: every entry on every data set, at every point of its grid."""
        return tuple(row for data in self.data or (None,) for entry in self.entries for row in _rows(self, entry, data))

    @property
    def sets(self) -> list[str]:
        """The data sets of the study, in order."""
        return list(self.data) or list(dict.fromkeys(row.data for row in self.rows))

    def searched_in(self, tuning: str | Path) -> Spec:
        """Return the study with the settings of searches in another folder."""
        return replace(self, tuning=str(tuning))

    def seeds_of(self, row: StudyRow) -> int:
        """Return the number of seeds of a row."""
        return min(self.seeds, row.seeds or self.seeds)

    def on(self, data: Sequence[str] | None) -> Spec:
        """Return the study on some data sets: those of its own that are named, or else all that are named."""
        if data is None:
            return self
        if not self.data:
            return replace(self, entries=tuple(entry for entry in self.entries if entry["data"] in data))
        return replace(self, data=tuple(name for name in self.data if name in data) or tuple(data))


def specs() -> list[str]:
    """Return the names of all studies.

    Examples
    --------
    >>> "overall" in specs()
    True
    """
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


@cache
def read_spec(name: str, quick: bool = False) -> Spec:
    """Read a study by name.

    Parameters
    ----------
    name
        See `specs`.
    quick
        With the settings of the table ``[quick]``: fewer epochs, smaller grids, one seed.

    Examples
    --------
    >>> read_spec("overall").protocol
    'released'
    """
    if name not in specs():
        raise ParameterError(f"unknown study {name!r}: {did_you_mean(name, specs())}")
    return _spec(name, _document(name), quick)


def parse_spec(name: str, text: str, quick: bool = False) -> Spec:
    r"""Return the study that a TOML text describes; see `read_spec`.

    Examples
    --------
    >>> text = 'title = "T"\nabout = "A"\ndata = ["a", "b"]\n[[row]]\nlabel = "x {k}"\nmodel = "itemknn"\n'
    >>> [(row.data, row.label) for row in parse_spec("t", text + "grid.k = [5, 9]\non.b = { shrink = 0 }").rows]
    [('a', 'x 5'), ('a', 'x 9'), ('b', 'x 5'), ('b', 'x 9')]
    """
    return _spec(name, plain(tomllib.loads(text)), quick)


def _spec(name: str, document: Mapping[str, Any], quick: bool) -> Spec:
    found = dict(document)
    in_a_hurry = found.pop("quick", {})
    hurry = dict(in_a_hurry) if quick else {}
    entries, claims = found.pop("row", ()), found.pop("claim", ())
    changes, grid = hurry.pop("parameters", {}), hurry.pop("grid", {})
    if quick:
        hurry["tuning"] = ""
    found |= hurry
    _check(found, Spec, name, ("name", "entries", "claims", "quick", "changes", "grid"))
    for entry in entries:
        _check(entry, {field.name for field in fields(StudyRow)} | ENTRY_KEYS, name)
    made = tuple(Claim(**claim) for claim in claims)
    return Spec(name=name, entries=tuple(entries), claims=made, quick=quick, changes=changes, grid=grid, **found)


def _rows(spec: Spec, given: Mapping[str, Any], data: str | None) -> Iterator[StudyRow]:
    """Yield the rows of one entry on one data set: one, or one for each point of its grid."""
    base = _entry_of_overall(given["like"], spec.name) if "like" in given else {}
    entry = {**{key: base[key] for key in ("model", "quick") if key in base}, **given}
    entry.pop("like", None)
    own, skip, hurry = entry.pop("on", {}), entry.pop("skip", ()), entry.pop("quick", {})
    bound, as_wide_as = entry.pop("bound", None), entry.pop("as_wide_as", None)
    search = entry.pop("search", base.get("search", ""))
    points = {key: spec.grid.get(key, values) for key, values in entry.pop("grid", {}).items()}
    if data in skip:
        return
    entry.setdefault("data", data)
    if isinstance(entry.get("seeds"), Mapping):
        entry["seeds"] = entry["seeds"].get(entry["data"])
    usual = {**base.get("parameters", {}), **base.get("on", {}).get(entry["data"], {})}
    found = found_settings(spec.tuning, entry["data"], search)
    settings = {**found, **usual, **entry.pop("parameters", {}), **own.get(entry["data"], {})}
    if bound is not None:
        settings["diversity"] = _one_bound(entry["model"], settings, bound)
    if as_wide_as is not None:
        settings["dim"] = _width(spec, as_wide_as, entry["data"])
    if spec.changes:
        known = default_params(entry["model"])
        settings |= {key: value for key, value in spec.changes.items() if key in known} | hurry
    fixed = entry.pop("point", {})
    for values in itertools.product(*points.values()):
        point = {**fixed, **dict(zip(points, values, strict=True))}
        said = {key: entry[key].format(**point) for key in ("label", "paper") if entry.get(key)}
        yield StudyRow(**{**entry, **said, "parameters": {**settings, **point}, "point": point})


def found_settings(tuning: str | Path, data: str, search: str) -> dict[str, Any]:
    """Return the settings that a search has found; none where there was none.

    Examples
    --------
    >>> found_settings("nowhere", "steam-200k", "dpcml2")
    {}
    """
    file = Path(tuning) / Path(data).stem / search / BEST
    if not tuning or not search or not file.is_file():
        return {}
    return dict(plain(tomllib.loads(file.read_text(encoding="utf-8"))).get("parameters", {}))


def _one_bound(model: str, settings: Mapping[str, Any], which: str) -> tuple[Any, Any]:
    """Return the bounds of DCRS with only the lower or only the upper one."""
    low, high = settings.get("diversity", default_params(model)["diversity"])
    return (low, None) if which == "lower" else (None, high)


def _width(spec: Spec, label: str, data: str) -> int:
    """Return how many numbers a user has in a row of the overall table: dimensions times vectors."""
    entry = _entry_of_overall(label, spec.name)
    found = found_settings(spec.tuning, data, entry.get("search", ""))
    given = {**default_params(entry["model"]), **found, **entry.get("parameters", {})}
    return int(given["dim"] * given["n_vectors"])


def _entry_of_overall(label: str, study: str) -> Mapping[str, Any]:
    """Return the entry of a row in the study of overall performance, whose model and parameters other studies share."""
    entries = {entry["label"]: entry for entry in _document("overall")["row"]}
    if label not in entries:
        raise ParameterError(f"study {study!r}: no row {label!r} in overall: {did_you_mean(label, list(entries))}")
    found: Mapping[str, Any] = entries[label]
    return found


def _check(found: Mapping[str, Any], known: type | set[str], study: str, forbidden: tuple[str, ...] = ()) -> None:
    names = known if isinstance(known, set) else {field.name for field in fields(known)}
    for key in found:
        if key not in names - set(forbidden):
            raise ParameterError(f"study {study!r}: unknown key {key!r}: {did_you_mean(key, sorted(names))}")


@cache
def _document(name: str) -> Mapping[str, Any]:
    """Return the content of a spec's file; each file is parsed once."""
    found: Mapping[str, Any] = plain(tomllib.loads(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8")))
    return found


def _folder() -> Any:
    return resources.files("dpcml.paper").joinpath("specs")
