"""Studies: a spec says which model is trained on which data with which seeds; finished runs are skipped."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.data.catalog import load_or_read
from dpcml.data.interactions import Interactions
from dpcml.errors import DataError, ParameterError, did_you_mean
from dpcml.evaluation.evaluate import evaluate
from dpcml.experiments.paper import METRICS
from dpcml.files import atomic
from dpcml.models import create
from dpcml.version import version

Say = Callable[[str], object]


@dataclass(frozen=True)
class Row:
    """One line of a table: a model with its settings on a data set."""

    data: str
    label: str
    model: str
    paper: str | None = None  # the method in the paper's table that it stands beside
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """A study."""

    name: str
    title: str
    about: str
    protocol: str
    at: tuple[int, ...]
    seeds: int
    rows: tuple[Row, ...]


def specs() -> list[str]:
    """Return the names of all studies.

    Examples
    --------
    >>> "quality" in specs()
    True
    """
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


def read_spec(name: str) -> Spec:
    """Read a study by name.

    Examples
    --------
    >>> read_spec("quality").protocol
    'released'
    """
    if name not in specs():
        raise ParameterError(f"unknown study {name!r}: {did_you_mean(name, specs())}")
    plain = tomllib.loads(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    rows = tuple(Row(**row) for row in plain.pop("row"))
    return Spec(name=name, rows=rows, **{**plain, "at": tuple(plain["at"])})


def _folder() -> Any:
    return resources.files("dpcml.experiments").joinpath("specs")


def run(
    spec: Spec,
    path: str | Path,
    *,
    data: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    seeds: int | None = None,
    say: Say = lambda text: None,
) -> pl.DataFrame:
    """Do the runs of a study that are not in its results file yet; each is added as soon as it is done.

    A seed decides both the split and the training. A run whose settings or whose version of the code changed is done
    anew; one that fails is reported and leaves the others.
    """
    path = Path(path)
    done = pl.read_csv(path) if path.exists() else pl.DataFrame()
    loaded: dict[str, Interactions] = {}
    for row, seed in _wanted(spec, data, labels, seeds):
        settings = json.dumps(row.parameters, sort_keys=True)
        if _has(done, row, seed, settings):
            continue
        try:
            if row.data not in loaded:
                loaded[row.data] = load_or_read(row.data)
            record = _one(spec, row, seed, settings, loaded[row.data])
        except DataError as error:
            say(f"{row.data}, {row.label}, seed {seed}: {error}")
            continue
        done = _replace(done, record)
        with atomic(path) as temporary:
            done.write_csv(temporary, float_precision=6)
        figures = f"P@3 {record['P@3']:.4f}, MRR {record['MRR']:.4f}, {record['seconds']:.0f} s"
        say(f"{row.data}, {row.label}, seed {seed}: {figures}")
    return done


def _wanted(
    spec: Spec, data: Sequence[str] | None, labels: Sequence[str] | None, seeds: int | None
) -> Iterator[tuple[Row, int]]:
    for row in spec.rows:
        if (data is None or row.data in data) and (labels is None or row.label in labels):
            for seed in range(spec.seeds if seeds is None else seeds):
                yield row, seed


def _one(spec: Spec, row: Row, seed: int, settings: str, data: Interactions) -> dict[str, Any]:
    split = data.split((0.6, 0.2, 0.2), seed)
    model = create(row.model, **row.parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    started = time.perf_counter()
    model.fit(split.train, split.valid)
    seconds = time.perf_counter() - started
    report = evaluate(
        model, split.train, split.test, valid=split.valid, protocol=spec.protocol, at=spec.at, beyond=False
    )
    history = getattr(model, "history_", None)
    return {
        "data": row.data, "label": row.label, "model": row.model, "parameters": settings, "seed": seed,
        "split": report.split, "protocol": report.protocol, "version": version(), "users": report.n_users,
        "epochs": len(history.epochs) if history else 0,
        "best_epoch": history.best.number if history and history.best else 0,
        "seconds": round(seconds, 2),
        **{name: round(report.metrics[name], 6) for name in METRICS},
    }  # fmt: skip


def _same(done: pl.DataFrame, data: str, label: str, seed: int) -> pl.Expr:
    return (pl.col("data") == data) & (pl.col("label") == label) & (pl.col("seed") == seed)


def _has(done: pl.DataFrame, row: Row, seed: int, settings: str) -> bool:
    if not done.height:
        return False
    same = _same(done, row.data, row.label, seed) & (pl.col("parameters") == settings) & (pl.col("model") == row.model)
    return done.filter(same & (pl.col("version") == version())).height > 0


def _replace(done: pl.DataFrame, record: dict[str, Any]) -> pl.DataFrame:
    new = pl.DataFrame([record])
    if not done.height:
        return new
    others = done.filter(~_same(done, record["data"], record["label"], record["seed"]))
    return pl.concat([others, new.select(others.columns)], how="vertical_relaxed").sort("data", "label", "seed")
