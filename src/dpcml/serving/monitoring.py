"""Monitoring: Prometheus metrics, and logs as lines of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

LOGGER = logging.getLogger("dpcml.serving")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
OTHER = "other"  # label of unknown paths, and the status of requests without a response
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # set where several worker processes share their metrics


class Metrics:
    """The metrics of one application.

    Where ``PROMETHEUS_MULTIPROC_DIR`` is set, every worker process keeps its values in a file of that folder, and each
    of them reports the sum over all workers.

    Parameters
    ----------
    paths
        Paths that are counted by name; any other path counts as ``other``.
    workers_wanted
        Number of worker processes that should run.
    models
        Returns the labels of the served models.

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
    ) -> None:
        self.paths = frozenset(paths)
        self._registry = CollectorRegistry()
        shared = SHARED in os.environ
        # With a shared folder only the collector is registered: it reads the values of all workers from their files.
        own = None if shared else self._registry
        if shared:
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._registry.register(_ServerCollector(workers_wanted, models))
        self._requests = Counter("dpcml_requests", "Answered requests.", ["path", "status"], registry=own)
        self._seconds = Histogram(
            "dpcml_request_seconds", "Time from the start of a request to the end of its response.", ["path"],
            buckets=BUCKETS, registry=own,
        )  # fmt: skip
        self.in_flight = Gauge(
            "dpcml_requests_in_flight", "Requests in progress.", registry=own, multiprocess_mode="livesum"
        )
        self.reloads = Counter("dpcml_reloads", "Attempts to reload the models.", ["outcome"], registry=own)
        for outcome in ("done", "refused"):
            self.reloads.labels(outcome)  # reported as 0 before the first reload
        self.worker = Gauge("dpcml_workers", "Running workers.", registry=own, multiprocess_mode="livesum")

    def path(self, path: str) -> str:
        """Return the label of a request's path; unknown paths may hold anything, so they get one label."""
        return path if path in self.paths else OTHER

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(self.path(path), str(status or OTHER)).inc()
        self._seconds.labels(self.path(path)).observe(seconds)

    def workers(self) -> int:
        """Return the number of workers that take requests."""
        return int(self._registry.get_sample_value("dpcml_workers") or 0)

    def text(self) -> bytes:
        """Return all metrics, summed over the workers, in the text format of Prometheus."""
        return generate_latest(self._registry)


class _ServerCollector(Collector):
    """Metrics that are read when they are asked for: the wanted workers and the served models."""

    def __init__(self, workers_wanted: int, models: Callable[[], Iterable[Mapping[str, str]]]) -> None:
        self._workers_wanted, self._models = workers_wanted, models

    def collect(self) -> Iterator[Metric]:
        """Return the current values."""
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


def log_event(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event with its fields. Fields must not hold user ids, histories or addresses."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def log_to_stderr() -> None:
    """Write the events of this process, and warnings of uvicorn, to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
