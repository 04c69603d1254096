"""A bounded load of HTTP requests, on the loopback only: so many at once, so many in all, for so long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from dpcml.utils.errors import ParameterError

MOST_AT_ONCE = 256
MOST_REQUESTS = 1_000_000
MOST_SECONDS = 120.0


def put_load(
    url: str, bodies: Sequence[dict[str, Any]], *, at_once: int, requests: int, seconds: float
) -> dict[str, Any]:
    """Send requests over connections that stay open, each as soon as the one before is answered.

    Parameters
    ----------
    url
        Where to POST, on this machine.
    bodies
        What to send, in turn.
    at_once
        Connections.
    requests, seconds
        When to stop, whichever comes first; requests under way are finished.

    Returns
    -------
    dict
        Requests per second, quantiles of the latency in milliseconds, errors (any status but 200, a lost connection).

    Examples
    --------
    >>> put_load("http://example.org/", [{}], at_once=1, requests=1, seconds=1)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: http://example.org/: load is put on this machine only; name http://127.0.0.1:PORT/...
    """
    parts = urlsplit(url)
    if parts.hostname not in ("127.0.0.1", "localhost", "::1") or parts.port is None:
        raise ParameterError(f"{url}: load is put on this machine only; name http://127.0.0.1:PORT/...")
    limits = (
        ("at_once", at_once, MOST_AT_ONCE),
        ("requests", requests, MOST_REQUESTS),
        ("seconds", seconds, MOST_SECONDS),
    )
    for name, value, most in limits:
        if not 0 < value <= most:
            raise ParameterError(f"{name}={value}: must be above 0 and at most {most:g}")
    sent = [_request(parts.path, body) for body in bodies]
    return asyncio.run(_load(str(parts.hostname), parts.port, sent, at_once, requests, seconds))


async def _load(
    host: str, port: int, sent: Sequence[bytes], at_once: int, requests: int, seconds: float
) -> dict[str, Any]:
    turns, end = iter(range(requests)), time.perf_counter() + seconds
    latencies: list[float] = []
    errors = 0

    async def caller() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection(host, port)
        for turn in turns:  # shared by all callers
            begin = time.perf_counter()
            if begin > end:
                break
            try:
                writer.write(sent[turn % len(sent)])
                status = await _status(reader)
                errors += status != 200  # after the wait: others count meanwhile
            except (OSError, asyncio.IncompleteReadError, ValueError):
                errors += 1
                break
            latencies.append(time.perf_counter() - begin)
        writer.close()

    begin = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(at_once)))
    took = time.perf_counter() - begin
    p50, p99 = np.quantile(latencies or [np.nan], [0.5, 0.99]) * 1000
    return {
        "at_once": at_once,
        "requests": len(latencies),
        "errors": int(errors),
        "seconds": took,
        "requests_per_second": len(latencies) / took,
        "p50_milliseconds": float(p50),
        "p99_milliseconds": float(p99),
    }


def _request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return f"{head}\r\n\r\n".encode() + content


async def _status(reader: asyncio.StreamReader) -> int:
    """Read one answer; returns its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lengths = [line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:")]
    await reader.readexactly(int(lengths[0]))
    return int(head.split(" ", 2)[1])
