"""Running the application: one process, or several that share a socket."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from dpcml.models.multi_interest import MultiInterest
from dpcml.serving.app import create_app
from dpcml.serving.crew import Crew
from dpcml.serving.logs import log_to_stderr, say
from dpcml.serving.settings import ServeSettings
from dpcml.serving.workers import Workers
from dpcml.storage import load
from dpcml.utils.errors import DataError, DpcmlError

BACKLOG = 2048  # connections that wait to be taken
PATIENCE = 30  # seconds that requests under way have to end when the server is told to stop


def run(
    directory: Path,
    settings: ServeSettings,
    *,
    host: str,
    port: int,
    workers: int = 1,
    ready: Callable[[str], None] = lambda where: None,
) -> None:
    """Serve a model until a signal says otherwise; requests under way are finished first.

    Parameters
    ----------
    directory, settings
        What to serve, and how.
    host, port
        Where to listen; port 0 is any free one.
    workers
        Processes, each with the model in its memory.
    ready
        Called with the address once it takes requests.
    """
    for folder in (directory, *([settings.compare] if settings.compare else [])):
        _try(folder, settings)  # an error here is told once, not by every worker
    place = bind(host, port)
    log_to_stderr()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until somebody can take it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # uvicorn finishes what was taken, then raises the signal again
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{place.getsockname()[1]}/")
    common: dict[str, Any] = {"log_config": None, "access_log": False, "timeout_graceful_shutdown": PATIENCE}
    if workers == 1:
        config = uvicorn.Config(create_app(directory, settings), **common)
        uvicorn.Server(config).run([place])
        return
    with tempfile.TemporaryDirectory(prefix="dpcml-serve-") as shared:
        worker = partial(_worker, directory, replace(settings, workers=workers, shared=Path(shared)))
        config = uvicorn.Config(worker, factory=True, workers=workers, **common)
        team = Workers(config, [place], Crew(Path(shared), workers))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        team.run()
    if team.all_lost:
        raise DataError(f"{directory}: no worker could load the model, so the server has ended; the log says why")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or say why it cannot.

    Examples
    --------
    >>> with bind("127.0.0.1", 0) as place:
    ...     place.getsockname()[0]
    '127.0.0.1'
    """
    # The protocol must be named: asyncio sends at once (TCP_NODELAY) only where it is, and otherwise the second part of
    # every answer waits 40 ms for the other side.
    place = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((host, port))
        place.listen(BACKLOG)  # from here on connections wait, even while the model is being loaded
    except (OSError, OverflowError) as error:
        place.close()
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{host}:{port}: cannot be listened at ({reason}); choose another --host or --port") from None
    place.set_inheritable(True)
    return place


def _try(folder: Path, settings: ServeSettings) -> None:
    """Load a model to see that it is sound, and make its index once, for all workers."""
    model = load(folder)
    if settings.index and isinstance(model, MultiInterest):
        model.prepare_index()


def _end(number: int, frame: object) -> None:
    sys.exit(0)


def _worker(directory: Path, settings: ServeSettings) -> FastAPI:
    log_to_stderr()
    parent = os.getppid()
    try:
        return create_app(directory, settings, tell_others=lambda: os.kill(parent, signal.SIGHUP))
    except Exception as error:
        told = isinstance(error, DpcmlError)
        reason = str(error) if told else repr(error)
        say("worker cannot start", logging.ERROR, process=os.getpid(), reason=reason, error=None if told else error)
        sys.exit(STARTUP_FAILURE)
