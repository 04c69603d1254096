"""One run of a search on an optuna study: what is left to try, who tries it, and the table of all trials."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.results_store import ResultsRow, ResultsStore, parameters_text
from dpcml.tuning.space import Point
from dpcml.tuning.workers import DEFAULTS, OUTCOME, PARAMETERS, PLANNED, WORKER, SearchConfig, WorkerPool, lost, work
from dpcml.utils.errors import DataError
from dpcml.utils.packages import require, version
from dpcml.utils.text import plain

PROTOCOL = "released"  # of the validation value, see `dpcml.evaluation.evaluate.validation`
KEY = ("model", "parameters", "asked_epochs", "metric", "seed", "split", "version")  # of a row in the table of trials
POLL = 0.1  # seconds between two looks at the workers


@dataclass(frozen=True)
class TuningProgress:
    """The state of a search after a trial."""

    done: int
    total: int
    best: float | None
    trial: int  # its number, from 1
    value: float | None  # None: the trial failed
    error: str = ""


class SearchRun:
    """One call of `tune` on a study: plans the trials, has them run, and keeps the table of trials up to date."""

    def __init__(
        self,
        config: SearchConfig,
        store: ResultsStore,
        origin: dict[str, str],
        callback: Callable[[TuningProgress], object],
    ) -> None:
        self.config, self.store, self.origin, self.callback = config, store, origin, callback
        self.study = config.open()
        self.optuna = require("optuna", "tune")
        self.states = self.optuna.trial.TrialState
        self.owner = f"{socket.gethostname()}:{os.getpid()}"
        self.total = self.done = self.failed = 0
        self._reported: set[int] = set()
        self._written = False

    def plan(self, points: list[Point], budget: int, defaults: bool) -> SearchConfig:
        """Queue the trials that are not done yet; return the configuration for workers."""
        self._fail_lost()
        self._take_over_table()
        known = {
            trial.user_attrs[PARAMETERS] for trial in self._trials() if trial.state != self.states.FAIL and _ours(trial)
        }
        planned: list[tuple[Point, dict[str, Any], str]] = []
        if defaults:
            planned.append(({}, {DEFAULTS: True}, parameters_text(self.config.space.fixed)))
        planned += [(point, {}, self._parameters(point)) for point in points]
        for point, attributes, text in planned[:budget]:
            if text not in known:
                self.study.enqueue_trial(point, user_attrs={PLANNED: True, PARAMETERS: text, **attributes})
        trials = self._trials()
        self._reported = {trial.number for trial in trials if trial.state.is_finished()}
        self.done = sum(_ours(trial) and trial.state.is_finished() for trial in trials)
        kept = sum(trial.state != self.states.FAIL for trial in trials)
        missing = max(0, min(budget, self.config.space.count or budget) - kept) if self.config.adaptive else 0
        waiting = sum(not trial.state.is_finished() for trial in trials)
        self.total = self.done + waiting + missing
        self.config = replace(self.config, last=len(trials) + missing)
        return self.config

    def run_here(self, train: Interactions, valid: Interactions) -> None:
        """Run all trials in this process."""
        for _ in work(self.config, train, valid, f"{self.owner}:0"):
            self.report()

    def run_in(self, pool: WorkerPool, count: int) -> None:
        """Run all trials in worker processes; one that dies fails its trial and is replaced."""
        running = {f"{self.owner}:{k}": pool.start(f"{self.owner}:{k}") for k in range(count)}
        started = count
        while running:
            for worker, handle in list(running.items()):
                reason = pool.ended(handle)
                if reason is None:
                    continue
                del running[worker]
                if reason:
                    self._fail_trial_of(worker, reason)
                    name = f"{self.owner}:{started}"
                    running[name], started = pool.start(name), started + 1
            self.report()
            time.sleep(POLL)

    def report(self) -> None:
        """Write the table and call the callback for trials that ended since the last time."""
        ended = [trial for trial in self._trials() if trial.state.is_finished() and _ours(trial)]
        new = [trial for trial in ended if trial.number not in self._reported]
        if new or not self._written:
            self.store.put(self._row(trial) for trial in ended)
            self._written = True
        values = [trial.value for trial in ended if trial.state == self.states.COMPLETE]
        self.failed = sum(trial.state == self.states.FAIL for trial in ended)
        for trial in new:
            self._reported.add(trial.number)
            self.done += 1
            row = self._row(trial)
            said = {"trial": row["trial"], "value": row["value"], "error": row["error"]}
            total = max(self.total, self.done)
            self.callback(TuningProgress(self.done, total, max(values, default=None), **said))

    def best_row(self) -> ResultsRow:
        """Return the row of the best complete trial, the earlier one of equals."""
        ended = [trial for trial in self._trials() if _ours(trial) and trial.state.is_finished()]
        complete = [trial for trial in ended if trial.state == self.states.COMPLETE]
        if not complete:
            said = self._row(ended[0])["error"] if ended else "the space is empty"
            raise DataError(f"none of {len(ended)} trials ended well; the first: {said}")
        return self._row(max(complete, key=lambda trial: (trial.value, -trial.number)))

    def _trials(self) -> list[Any]:
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    def _row(self, trial: Any) -> ResultsRow:
        outcome = trial.user_attrs.get(OUTCOME, {})
        names = {self.states.COMPLETE: "ok", self.states.PRUNED: "pruned", self.states.FAIL: "failed"}
        return {
            "trial": trial.number + 1,
            "status": names[trial.state],
            "metric": self.config.metric,
            "value": None if trial.state == self.states.FAIL else trial.value,
            "model": self.config.model,
            "parameters": trial.user_attrs[PARAMETERS],
            "asked_epochs": self.config.epochs,
            "epochs": outcome.get("epochs", 0),
            "best_epoch": outcome.get("best_epoch", 0),
            "seconds": outcome.get("seconds", 0.0),
            "seed": self.config.seed,
            **self.origin,
            "protocol": PROTOCOL,
            "version": version(),
            "error": outcome.get("error", ""),
        }

    def _parameters(self, point: Point) -> str:
        """Return the parameters of a point as optuna stores it, as text."""
        suggested = self.config.space.suggest(self.optuna.trial.FixedTrial(point))
        return parameters_text({**self.config.space.fixed, **suggested})

    def _take_over_table(self) -> None:
        """Add complete and pruned trials of the table to the study, where its journal lacks them."""
        known = {trial.user_attrs.get(PARAMETERS) for trial in self._trials()}
        shared = {
            "model": self.config.model, "asked_epochs": self.config.epochs, "metric": self.config.metric,
            "seed": self.config.seed, "split": self.origin["split"], "version": version(),
            **({"fingerprint": self.origin["fingerprint"]} if "fingerprint" in self.origin else {}),
        }  # fmt: skip
        space, ended = self.config.space, {"ok": self.states.COMPLETE, "pruned": self.states.PRUNED}
        for row in self.store.rows:
            of_another = any(row.get(name) != value for name, value in shared.items())
            if of_another or row["status"] not in ended or row["parameters"] in known:
                continue
            point = {name: plain(value) for name, value in json.loads(row["parameters"]).items()}
            points = {name: value for name, value in point.items() if name not in space.fixed}
            if points and points.keys() != space.dimensions.keys():
                continue  # a trial of another space
            outcome = {name: row[name] for name in ("epochs", "best_epoch", "seconds")} | {"error": ""}
            distributions = {name: space.dimensions[name].distribution() for name in points}
            try:
                trial = self.optuna.create_trial(
                    params=space.encode(points) if points else {}, distributions=distributions, value=row["value"],
                    state=ended[row["status"]], user_attrs={PARAMETERS: row["parameters"], OUTCOME: outcome},
                )  # fmt: skip
            except ValueError:
                continue  # a value that the space no longer has
            self.study.add_trial(trial)

    def _fail_lost(self) -> None:
        """Fail trials that were running when their search was killed; they are planned again.

        One without a worker was killed before it could say whose it is, a moment after it was taken.
        """
        for trial in self._trials():
            host, _, rest = trial.user_attrs.get(WORKER, f"{socket.gethostname()}:").partition(":")
            if trial.state == self.states.RUNNING and host == socket.gethostname() and not _alive(rest):
                self.study.tell(trial.number, state=self.states.FAIL)

    def _fail_trial_of(self, worker: str, reason: str) -> None:
        for trial in self._trials():
            if trial.state == self.states.RUNNING and trial.user_attrs.get(WORKER) == worker:
                live = self.optuna.trial.Trial(self.study, trial._trial_id)
                if PARAMETERS not in trial.user_attrs:
                    live.set_user_attr(PARAMETERS, self._parameters(trial.params))
                live.set_user_attr(OUTCOME, {"error": reason})
                self.study.tell(live, state=self.states.FAIL)
                return
        raise DataError(
            f"a worker ended before its first trial: {reason}; a script that calls tune does so below"
            " 'if __name__ == \"__main__\":', or with workers=1"
        )


def _ours(trial: Any) -> bool:
    """Say whether a trial counts: it has parameters, and was not lost with the process that ran it."""
    return PARAMETERS in trial.user_attrs and not lost(trial)


def _alive(rest: str) -> bool:
    """Say whether the process of a worker's search runs; ``rest`` is a worker's name without its host."""
    process = rest.partition(":")[0]
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return int(process) != os.getpid()
