"""Monitoring: metrics for Prometheus, and logs as lines of JSON."""

from __future__ import annotations

import bisect
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dpcml.serving.counters import COLUMNS, CounterBlock

LOGGER = logging.getLogger("dpcml.serving")
LOG_LINES_PER_SECOND = 500  # of one process; what is left out is counted and said
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
CLIENT_LEFT = 499  # the status under which requests are counted whose client has gone before the answer
STATUSES = (200, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, CLIENT_LEFT, 500, 503, 507)
OTHER = "other"  # label of unknown paths, and of all other statuses
OUTCOMES = ("done", "refused")  # of a reload

_IN_FLIGHT, _WORKER, _RELOADS, _FIRST_PATH = 0, 1, 2, 2 + len(OUTCOMES)
GAUGES = slice(_IN_FLIGHT, _WORKER + 1)  # numbers that a worker which has died no longer has
_SECONDS = len(STATUSES) + 1  # column of the sum of seconds within the columns of a path; the buckets follow
_WIDTH = _SECONDS + 1 + len(BUCKETS) + 1
_STATUS = {status: place for place, status in enumerate(STATUSES)}


class Metrics:
    """The metrics of one application, or of one worker of several; each worker reports the sum over all of them.

    Parameters
    ----------
    paths
        Paths that are counted by name; any other path counts as ``other``.
    workers_wanted
        Number of worker processes that should run.
    models
        Returns the labels of the served models.
    block, slot
        The numbers that workers share, and the row of this worker.

    Examples
    --------
    >>> metrics = Metrics(["/health"])
    >>> metrics.observe("/health", 200, 0.002)
    >>> [line for line in metrics.text().decode().splitlines() if line.startswith("dpcml_requests_total")]
    ['dpcml_requests_total{path="/health",status="200"} 1.0']
    """

    def __init__(
        self,
        paths: Iterable[str],
        workers_wanted: int = 1,
        models: Callable[[], Iterable[Mapping[str, str]]] = lambda: (),
        block: CounterBlock | None = None,
        slot: int = 0,
    ) -> None:
        names = [*sorted(set(paths)), OTHER]
        if _FIRST_PATH + _WIDTH * len(names) > COLUMNS:
            raise ValueError(f"{len(names)} paths: a worker has room for {(COLUMNS - _FIRST_PATH) // _WIDTH}")
        self._first = {name: _FIRST_PATH + _WIDTH * place for place, name in enumerate(names)}
        self._block = block or CounterBlock()
        self._own = self._block.values[slot]
        self._own[GAUGES] = 0  # the worker that had this row before may have been killed
        self._lock = threading.Lock()  # for what is counted from other threads than that of the event loop
        self._registry = CollectorRegistry()
        self._registry.register(_ServerCollector(self, workers_wanted, models))

    def path(self, path: str) -> str:
        """Return the label of a request's path; unknown paths may hold anything, so they get one label."""
        return path if path in self._first else OTHER

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a finished request; called from the event loop only."""
        first = self._first.get(path) or self._first[OTHER]
        own = self._own
        own[first + _STATUS.get(status, len(STATUSES))] += 1
        own[first + _SECONDS] += seconds
        own[first + _SECONDS + 1 + bisect.bisect_left(BUCKETS, seconds)] += 1

    def begin(self) -> None:
        """Count a request in progress; called from the event loop only."""
        self._own[_IN_FLIGHT] += 1

    def end(self) -> None:
        """Count a request no longer as in progress."""
        self._own[_IN_FLIGHT] -= 1

    def reloaded(self, outcome: str) -> None:
        """Count a reload that was done or refused."""
        with self._lock:
            self._own[_RELOADS + OUTCOMES.index(outcome)] += 1

    def set_running(self, running: bool) -> None:
        """Say whether this worker takes requests."""
        self._own[_WORKER] = running

    def workers(self) -> int:
        """Return the number of workers that take requests."""
        return int(self._total(_WORKER))

    def text(self) -> bytes:
        """Return all metrics, summed over the workers, in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _total(self, column: int) -> float:
        return float(self._block.values[:, column].sum())

    def families(self) -> Iterator[Metric]:
        """Return the current values as families of Prometheus."""
        total = self._block.values.sum(axis=0).tolist()
        requests = CounterMetricFamily("dpcml_requests", "Finished requests.", labels=["path", "status"])
        seconds = HistogramMetricFamily(
            "dpcml_request_seconds", "Time from the start of a request to the end of its response.", labels=["path"]
        )
        for path, first in self._first.items():
            for place, status in enumerate((*STATUSES, OTHER)):
                if total[first + place]:
                    requests.add_metric([path, str(status)], total[first + place])
            start = first + _SECONDS + 1
            counts = [sum(total[start : start + k + 1]) for k in range(len(BUCKETS) + 1)]
            if counts[-1]:
                edges = [*map(str, BUCKETS), "+Inf"]
                seconds.add_metric([path], list(zip(edges, counts, strict=True)), total[first + _SECONDS])
        reloads = CounterMetricFamily("dpcml_reloads", "Attempts to reload the models.", labels=["outcome"])
        for place, outcome in enumerate(OUTCOMES):
            reloads.add_metric([outcome], total[_RELOADS + place])
        yield from (requests, seconds, reloads)
        yield GaugeMetricFamily("dpcml_requests_in_flight", "Requests in progress.", value=total[_IN_FLIGHT])
        yield GaugeMetricFamily("dpcml_workers", "Running workers.", value=total[_WORKER])


class _ServerCollector(Collector):
    """Metrics that are read when they are asked for: the numbers of all workers, and the served models."""

    def __init__(
        self, metrics: Metrics, workers_wanted: int, models: Callable[[], Iterable[Mapping[str, str]]]
    ) -> None:
        self._metrics, self._workers_wanted, self._models = metrics, workers_wanted, models

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names are known only once there are values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the current values."""
        yield from self._metrics.families()
        yield GaugeMetricFamily("dpcml_workers_wanted", "Configured workers.", value=self._workers_wanted)
        info = Metric("dpcml_model_info", "The served models.", "gauge")
        for labels in self._models():
            info.add_sample("dpcml_model_info", dict(labels), 1)
        yield info


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON: time, level, event and the event's own fields.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "reloaded", "levelname": "INFO", "fields": {"model": "ease"}})
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["event"], line["level"], line["model"]
    ('reloaded', 'info', 'ease')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class LineLimit(logging.Filter):
    """Lets a number of lines per second pass, so that a flood of requests cannot fill a disk with logs.

    The first line of a later second says how many were left out (``lines_left_out``). Only what clients can cause is
    limited: requests, failures and the warnings of uvicorn. Starts, stops and reloads always pass.

    Parameters
    ----------
    per_second
        Lines per second.
    clock
        Returns the time in seconds.

    Examples
    --------
    >>> limit, record = LineLimit(2, clock=lambda: 0.0), logging.makeLogRecord({"msg": "request"})
    >>> [limit.filter(record) for _ in range(3)]
    [True, True, False]
    """

    LIMITED = frozenset({"request", "failed"})

    def __init__(self, per_second: int = LOG_LINES_PER_SECOND, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._per_second, self._clock = per_second, clock
        self._lock, self._second, self._passed, self._left_out = threading.Lock(), -1, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        if record.name == LOGGER.name and record.msg not in self.LIMITED:
            return True
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._passed = second, 0
            self._passed += 1
            if self._passed > self._per_second:
                self._left_out += 1
                return False
            if self._left_out:
                record.__dict__["fields"] = {**getattr(record, "fields", {}), "lines_left_out": self._left_out}
                self._left_out = 0
            return True


def log_event(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event with its fields. Fields must not hold user ids, histories or addresses."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def log_to_stderr() -> None:
    """Write the events of this process, and warnings of uvicorn, to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(LineLimit())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
