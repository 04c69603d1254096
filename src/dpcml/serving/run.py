"""Running the application with uvicorn: in one process, or in several workers that share a socket."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client import disable_created_metrics
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess

from dpcml.models.multi_interest import MultiInterest
from dpcml.serving.app import create_app
from dpcml.serving.monitoring import SHARED, log_event, log_to_stderr
from dpcml.serving.settings import ServeSettings
from dpcml.storage import load
from dpcml.utils.errors import DataError, DpcmlError

BACKLOG = 2048  # connections that the kernel queues
SHUTDOWN_SECONDS = 30  # for requests in progress, after SIGTERM
HEALTHCHECK_SECONDS = 60  # a worker that does not answer for so long is replaced; imports take some of it
RETRY_SECONDS = 10  # until a worker that could not load the model tries again


def run(
    directory: Path,
    settings: ServeSettings,
    *,
    host: str,
    port: int,
    workers: int = 1,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve a model until SIGTERM or SIGINT; requests in progress are finished first.

    Parameters
    ----------
    directory
        Directory of the model.
    settings
        Token, second model, limits.
    host
        Address to listen on.
    port
        Port to listen on; 0 takes a free one.
    workers
        Worker processes; each holds the model in its memory.
    ready
        Called with the server's address once it accepts connections.
    """
    for folder in (directory, *([settings.compare] if settings.compare else [])):
        _check_model(folder, settings)  # report an error once, not from every worker
    place = bind(host, port)
    log_to_stderr()
    disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of time series
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until the application handles it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)  # uvicorn raises the signal again after a graceful shutdown
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{place.getsockname()[1]}/")
    options: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
        "timeout_worker_healthcheck": HEALTHCHECK_SECONDS,
    }
    if workers == 1:
        uvicorn.Server(uvicorn.Config(create_app(directory, settings), **options)).run([place])
        return
    with tempfile.TemporaryDirectory(prefix="dpcml-serve-") as shared:
        os.environ[SHARED] = shared
        try:
            factory = partial(_create_worker, directory, replace(settings, workers=workers))
            Supervisor(uvicorn.Config(factory, factory=True, workers=workers, **options), [place]).run()
        finally:
            del os.environ[SHARED]


class Supervisor(Multiprocess):
    """Uvicorn's supervisor of worker processes, except that SIGHUP reloads the models inside the workers.

    Uvicorn would replace the workers instead, which closes their open connections.
    """

    def handle_signals(self) -> None:
        """Pass SIGHUP to all workers; a worker that is still starting blocks it until the model is loaded."""
        if signal.sigtimedwait({signal.SIGHUP}, 0) is not None:
            for worker in self.processes:
                with suppress(ProcessLookupError):
                    if worker.pid is not None:
                        os.kill(worker.pid, signal.SIGHUP)
        super().handle_signals()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died, and remove them from the metrics of running workers."""
        for worker in self.processes:
            worker.child_conn.close()  # the worker's own end: with it open, a ping would wait for a dead worker
        before = {worker.pid for worker in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {worker.pid for worker in self.processes}:
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
            log_event("worker lost", logging.ERROR, process=pid, then="replaced")


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise `DataError` with the reason.

    Examples
    --------
    >>> with bind("127.0.0.1", 0) as place:
    ...     place.getsockname()[0]
    '127.0.0.1'
    """
    # asyncio sets TCP_NODELAY only on sockets that name the protocol; without it each response takes 40 ms longer.
    place = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((host, port))
        place.listen(BACKLOG)  # connections wait in the queue while the model is loaded
    except (OSError, OverflowError) as error:
        place.close()
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{host}:{port}: cannot listen there ({reason}); choose another --host or --port") from None
    place.set_inheritable(True)
    return place


def _check_model(folder: Path, settings: ServeSettings) -> None:
    """Load a model to see that it is valid, and build its index once for all workers."""
    model = load(folder)
    if settings.index and isinstance(model, MultiInterest):
        model.prepare_index()


def _exit(number: int, frame: object) -> None:
    sys.exit(0)


def _create_worker(directory: Path, settings: ServeSettings) -> FastAPI:
    """Return the application of a worker process.

    A worker that cannot load the model, because its folder was damaged since the start, tries again every 10 seconds
    and on SIGHUP. With an error instead, uvicorn would end the other workers, which still hold a valid model.
    """
    log_to_stderr()
    supervisor = os.getppid()
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # there are no requests to finish yet: end at once
    while True:
        try:
            app = create_app(directory, settings, notify_workers=lambda: os.kill(supervisor, signal.SIGHUP))
        except Exception as error:
            known = isinstance(error, DpcmlError)
            log_event(
                "worker cannot start", logging.ERROR, process=os.getpid(), reason=str(error) if known else repr(error),
                error=None if known else error, then=f"tried again in {RETRY_SECONDS} s, or on SIGHUP",
            )  # fmt: skip
            signal.sigtimedwait({signal.SIGHUP}, RETRY_SECONDS)
        else:
            signal.signal(signal.SIGTERM, handler)
            return app
