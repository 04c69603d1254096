"""Logs as lines of JSON. They say what was asked for and how long it took, never who asked or what they like."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("dpcml.serving")


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, event, and the fields that came with it.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "reloaded", "levelname": "INFO", "fields": {"model": "ease"}})
    >>> line = json.loads(JsonLines().format(record))
    >>> line["event"], line["level"], line["model"]
    ('reloaded', 'info', 'ease')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def say(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event with its fields."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def log_to_stderr() -> None:
    """Send the events of this process, and uvicorn's, to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == LOGGER.name else logging.WARNING)
