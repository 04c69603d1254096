"""What a report may show of the results of a study: no row mixes runs of different makings."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpcml.paper import fingerprint
from dpcml.paper.document import Note
from dpcml.paper.run_store import Job, settings_key
from dpcml.paper.spec import Spec

EARLIER = "an earlier version"
SETTINGS = "all settings"  # a column for the time of the check


def consistent(spec: Spec, done: pl.DataFrame, jobs: Sequence[Job]) -> tuple[pl.DataFrame, list[Note]]:
    """Return the finished runs that a report may show, and notes on rows that are left out or out of date.

    A row is left out if its seeds were made by different code, settings or data. A row that was made by other code than
    today's, or before results had fingerprints, is shown, and named.

    Parameters
    ----------
    spec
        The study.
    done
        Its finished runs.
    jobs
        The runs that it has now.
    """
    if not done.height:
        return done, []
    known = done if "fingerprint" in done.columns else done.with_columns(fingerprint=pl.lit(None, pl.String))
    expected = {(job.data, job.label, settings_key(job.model, job.settings)): job.made_by() for job in jobs}
    models = {(job.data, job.label): job.model for job in jobs}
    keys = [
        settings_key(models.get((data, label), ""), settings)
        for data, label, settings in known.select("data", "label", "parameters").iter_rows()
    ]
    groups = known.with_columns(pl.Series(SETTINGS, keys, pl.String)).group_by(
        ["data", "label", SETTINGS], maintain_order=True
    )
    shown, notes = [], list[Note]()
    earlier: dict[str, list[str]] = {}
    current: set[str] = set()
    for key, group in groups:
        data, label, _ = map(str, key)
        runs = {int(line["seed"]): line["fingerprint"] for line in group.iter_rows(named=True)}
        if key in expected and fingerprint.changed(list(runs.values())):
            notes.append(_mixed(spec, data, label, runs))
            continue
        shown.append(group.drop(SETTINGS))
        if key in expected and not fingerprint.fits(next(iter(runs.values())), expected[key]):
            earlier.setdefault(data, []).append(label)
        else:
            current.add(data)
    notes += [_earlier(spec, data, labels, data not in current) for data, labels in earlier.items()]
    return pl.concat(shown) if shown else known.clear(), notes


def _mixed(spec: Spec, data: str, label: str, runs: dict[int, str | None]) -> Note:
    """Return the note on a row that is left out: which seeds were made by what, and how to run them again."""
    by_making: dict[str, list[int]] = {}
    for seed, kept in sorted(runs.items()):
        by_making.setdefault(fingerprint.making(kept) or EARLIER, []).append(seed)
    said = "; ".join(
        f"{'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))} by {_quoted(making)}"
        for making, seeds in by_making.items()
    )
    return Note(
        f"**Left out**: *{label}* on {data}, whose runs were made by different code, settings or data ({said}). Make"
        f' them again: `{_command(spec, data)} --label "{label}"`.',
        "warning",
    )


def _quoted(making: str) -> str:
    return making if making == EARLIER else f"`{making}`"


def _earlier(spec: Spec, data: str, labels: list[str], every: bool) -> Note:
    which = "all rows" if every else ", ".join(f"*{label}*" for label in labels)
    return Note(
        f"Made by {EARLIER} of the code, on {data}: {which}. `{_command(spec, data)}` makes them again.", "warning"
    )


def _command(spec: Spec, data: str) -> str:
    return f"dpcml reproduce {spec.name}{' --quick' if spec.quick else ''} --data {data}"
