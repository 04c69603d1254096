"""Searches for the settings of the studies: one per method and data set, all with the same number of trials."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from dpcml.models import create
from dpcml.paper import fingerprint
from dpcml.paper.parallel import in_turns, one_thread_each
from dpcml.paper.runs import DatasetCache, same_bits
from dpcml.paper.spec import BEST
from dpcml.results_store import ResultsStore
from dpcml.tuning.run import KEY
from dpcml.tuning.search import tune, write_best
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.text import plain

TRIALS = "trials.csv"
_datasets = DatasetCache()  # of a process


@dataclass(frozen=True)
class Search:
    """The search for the settings of one method on one data set."""

    data: str
    model: str
    budget: int
    metric: str = "P@3"
    halvings: int = 0
    epochs: int | None = None
    fixed: dict[str, Any] = field(default_factory=dict)

    def folder(self, tuning: str | Path) -> Path:
        """Return where its trials and its result are."""
        return Path(tuning) / Path(self.data).stem / self.model


def searches(
    data: Sequence[str] | None = None, models: Sequence[str] | None = None, quick: bool = False
) -> list[Search]:
    """Return the searches that the studies need, the quick methods first.

    Parameters
    ----------
    data, models
        Only these data sets (others than the paper's too), and methods.
    quick
        Few trials of few epochs.

    Examples
    --------
    >>> found = searches(["steam-200k"])
    >>> len({one.budget for one in found}), "hlr" in {one.model for one in found}
    (1, True)
    """
    document = plain(
        tomllib.loads(resources.files("dpcml.paper").joinpath("searches.toml").read_text(encoding="utf-8"))
    )
    hurry = document["quick"] if quick else {}
    shared = {name: hurry.get(name, document[name]) for name in ("budget", "halvings")}
    known = [name for group in document["search"] for name in group["models"]]
    for name in models or ():
        if name not in known:
            raise ParameterError(f"no search for {name!r}: {did_you_mean(name, known)}")
    return [
        Search(
            data=one, model=model, metric=document["metric"], epochs=hurry.get("epochs"),
            fixed={**group.get("fixed", {}), **group.get("on", {}).get(one, {})}, **shared,
        )
        for group in document["search"]
        for one in data or document["data"]
        for model in group["models"]
        if models is None or model in models
    ]  # fmt: skip


def run_searches(
    wanted: Sequence[Search],
    tuning: str | Path,
    *,
    workers: int = 1,
    say: Callable[[str], object] = lambda text: None,
) -> list[str]:
    """Do the searches that are not done yet; return those that failed, with their reasons.

    Every trial is kept as soon as it is done, so that a search that was killed goes on. Trials that other code or data
    made do not count: that search begins again. So does one of which only a part of the table is left: halving
    compares a trial with values of others that stand in the journal alone.
    """
    failed: list[str] = []
    for number, (one, result) in enumerate(_ended(wanted, tuning, workers), 1):
        place = f"[{number}/{len(wanted)}] search: {one.data}, {one.model}"
        try:
            value, trials, seconds = result()
        except Exception as error:  # the other searches go on
            failed.append(f"{one.data}, {one.model}: {error}")
            say(f"{place}: failed: {error}")
            continue
        say(f"{place}: {one.metric} {value:.4f}, {trials} trials, {seconds:.0f} s")
    return failed


def _ended(wanted: Sequence[Search], tuning: str | Path, workers: int) -> Iterator[tuple[Search, Callable[[], Any]]]:
    """Yield searches with their results as they end, in this process or in several."""
    if workers == 1:
        yield from ((one, partial(run_search, one, tuning)) for one in wanted)
        return
    with one_thread_each(workers) as pool:
        for one, future in in_turns(pool, workers, list(wanted), lambda one: (run_search, one, tuning)):
            yield one, future.result


def run_search(search: Search, tuning: str | Path) -> tuple[float, int, float]:
    """Do one search; return the best value, the number of trials, and the seconds that were needed now.

    Trials run one after the other, so that successive halving compares the same ones in every search.
    """
    folder, data = search.folder(tuning), _datasets(search.data)
    made_by = fingerprint.join(fingerprint.model_code(search.model), data.content_hash)
    _forget_others(folder / TRIALS, made_by, search.budget if search.halvings else 0)
    in_epochs = "epochs" in create(search.model).get_params()
    with same_bits(search.model):
        found = tune(
            data, search.model, budget=search.budget, defaults=True, metric=search.metric, fixed=search.fixed,
            halvings=search.halvings if in_epochs else 0, epochs=search.epochs if in_epochs else None, workers=1,
            file=folder / TRIALS, label=search.data, fingerprint=made_by,
        )  # fmt: skip
    write_best(folder / BEST, found, data=search.data, seed=0, split_seed=0)
    return found.best_value, found.trials, found.seconds


def _forget_others(table: Path, made_by: str, needed: int) -> None:
    """Remove the trials of a search that other code or data made, or fewer than needed without their journal."""
    journal = table.with_suffix(".journal")
    if not table.exists():
        return
    try:
        kept = [row.get("fingerprint") for row in ResultsStore(table, KEY).rows]
    except DataError:
        kept = []
    if set(kept) != {made_by} or (len(kept) < needed and not journal.exists()):
        table.unlink()
        journal.unlink(missing_ok=True)
