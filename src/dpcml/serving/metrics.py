"""Counters for Prometheus, in arrays that the processes of one server share."""

from __future__ import annotations

import fcntl
import mmap
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dpcml.serving.crew import Crew
from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
STATUSES = (200, 400, 401, 404, 405, 409, 413, 422, 500, 503, 0)  # 0: any other
OTHER = "other"  # the label of paths that do not exist
RELOADS = ("done", "refused")
SLOTS = 64  # processes that may share a file


class Metrics:
    """Counts of requests by path and status, their latency, those under way, reloads, and workers.

    Parameters
    ----------
    paths
        The paths that are counted; any other counts as ``other``.
    file
        Where the processes of one server keep their counts, each in a slot of its own, so that any of them can tell
        the sum; memory of this process by default.
    crew
        Knows how many processes there are; this one alone by default.

    Examples
    --------
    >>> metrics = Metrics(["/health"])
    >>> with metrics.under_way():
    ...     metrics.count("/health", 200, 0.002)
    >>> [line for line in metrics.text().splitlines() if line.startswith("dpcml_requests_total")]
    ['dpcml_requests_total{path="/health",status="200"} 1']
    """

    def __init__(self, paths: Iterable[str], file: Path | None = None, crew: Crew | None = None) -> None:
        self._crew = crew or Crew()
        self.paths = [*dict.fromkeys(paths), OTHER]
        self._width = len(self.paths) * (len(STATUSES) + len(BUCKETS) + 2) + 1 + len(RELOADS)
        self._lock = threading.Lock()
        slot = 0
        self._all: Array = np.zeros((1, self._width))  # a row for every process
        if file is not None:
            slot, self._all = self._share(file)
        counts, rest = np.split(self._all[slot], [len(self.paths) * len(STATUSES)])
        latency, rest = np.split(rest, [len(self.paths) * (len(BUCKETS) + 2)])
        self._statuses = counts.reshape(len(self.paths), -1)
        self._latency = latency.reshape(len(self.paths), -1)  # counts of buckets, of slower ones, seconds
        self._flight, self._reloads = rest[:1], rest[1:]
        self._flight[:] = 0  # a process that died in this slot finishes nothing any more

    def _share(self, file: Path) -> tuple[int, Array]:
        """Return the first slot that no living process holds, and the counts of all."""
        file.touch()
        self._file = file.open("r+b")
        size = 8 * SLOTS * self._width
        for slot in range(SLOTS):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except OSError:
                continue
            if file.stat().st_size < size:
                self._file.truncate(size)
            return slot, np.frombuffer(mmap.mmap(self._file.fileno(), size), np.float64).reshape(SLOTS, -1)
        raise DataError(f"{file}: {SLOTS} processes share it already; start fewer workers")

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        row = self.paths.index(path) if path in self.paths else -1
        column = STATUSES.index(status) if status in STATUSES else -1
        with self._lock:
            self._statuses[row, column] += 1
            self._latency[row, bisect_left(BUCKETS, seconds)] += 1
            self._latency[row, -1] += seconds

    def count_reload(self, outcome: str) -> None:
        """Count a reload that was ``done`` or ``refused``."""
        with self._lock:
            self._reloads[RELOADS.index(outcome)] += 1

    def under_way(self) -> UnderWay:
        """Return a context that counts as one request under way."""
        return UnderWay(self._flight, self._lock)

    def text(self, models: Sequence[Mapping[str, str]] = ()) -> str:
        """Return all counts, summed over processes, in the text format of Prometheus."""
        total = self._all.sum(axis=0)
        counts, rest = np.split(total, [len(self.paths) * len(STATUSES)])
        latency, rest = np.split(rest, [len(self.paths) * (len(BUCKETS) + 2)])
        lines = [
            *_head("dpcml_requests_total", "counter", "Requests answered."),
            *_requests(self.paths, counts.reshape(len(self.paths), -1)),
            *_head("dpcml_request_seconds", "histogram", "Time from a request's start to the end of its answer."),
            *_histogram(self.paths, latency.reshape(len(self.paths), -1)),
            *_head("dpcml_requests_in_flight", "gauge", "Requests under way."),
            f"dpcml_requests_in_flight {rest[0]:.0f}",
            *_head("dpcml_reloads_total", "counter", "Attempts to load a new model."),
            *(f'dpcml_reloads_total{{outcome="{name}"}} {rest[1 + k]:.0f}' for k, name in enumerate(RELOADS)),
            *_head("dpcml_workers", "gauge", "Processes that take requests."),
            f"dpcml_workers {self._crew.serving}",
            *_head("dpcml_workers_wanted", "gauge", "Processes that there should be."),
            f"dpcml_workers_wanted {self._crew.wanted}",
            *_head("dpcml_model_info", "gauge", "The models that are served."),
            *(f"dpcml_model_info{{{_labels(one)}}} 1" for one in models),
        ]
        return "\n".join(lines) + "\n"


class UnderWay:
    """Counts one request as under way while it is entered."""

    def __init__(self, flight: Array, lock: threading.Lock) -> None:
        self._flight, self._lock = flight, lock

    def __enter__(self) -> None:
        with self._lock:
            self._flight += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._flight -= 1


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _requests(paths: Sequence[str], counts: Array) -> list[str]:
    return [
        f'dpcml_requests_total{{path="{path}",status="{STATUSES[k] or OTHER}"}} {counts[row, k]:.0f}'
        for row, path in enumerate(paths)
        for k in np.flatnonzero(counts[row])
    ]


def _histogram(paths: Sequence[str], latency: Array) -> list[str]:
    lines = []
    for row, path in enumerate(paths):
        below = np.cumsum(latency[row, :-1])
        if not below[-1]:
            continue
        edges = [*(f"{edge:g}" for edge in BUCKETS), "+Inf"]
        lines += [
            f'dpcml_request_seconds_bucket{{path="{path}",le="{edge}"}} {count:.0f}'
            for edge, count in zip(edges, below, strict=True)
        ]
        lines.append(f'dpcml_request_seconds_sum{{path="{path}"}} {latency[row, -1]:.6f}')
        lines.append(f'dpcml_request_seconds_count{{path="{path}"}} {below[-1]:.0f}')
    return lines


def _labels(values: Mapping[str, str]) -> str:
    quoted = {key: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in values.items()}
    return ",".join(f'{key}="{value}"' for key, value in quoted.items())
