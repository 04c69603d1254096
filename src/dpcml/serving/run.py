"""Running the application with uvicorn: in one process, or in several workers that share a socket."""

from __future__ import annotations

import copy
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from dpcml.feedback import FeedbackJournal
from dpcml.models.multi_interest import MultiInterest
from dpcml.serving.app import create_app
from dpcml.serving.counters import CounterBlock
from dpcml.serving.monitoring import GAUGES, log_event, log_to_stderr
from dpcml.serving.protocol import ACCEPT_AT_ONCE, GracefulServer, LimitedProtocol
from dpcml.serving.settings import ServeSettings
from dpcml.storage import load
from dpcml.utils.errors import DataError, DpcmlError

BACKLOG = 2048  # connections that the kernel queues while the model is loaded
SHUTDOWN_SECONDS = 30  # for requests in progress, after SIGTERM
HEALTHCHECK_SECONDS = 60  # a worker that does not answer for so long is replaced
START_SECONDS = 300  # until its first answer: imports take long on a busy machine
COLLECT_AT = (2_000, 10, 10)  # new objects until Python looks for garbage; the command line has more, for compilers
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
    if settings.feedback is not None:
        FeedbackJournal(settings.feedback, settings.feedback_bytes).close()  # an error if it is no journal
    place = bind(host, port)
    log_to_stderr()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until the application handles it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)  # uvicorn raises the signal again after a graceful shutdown
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{place.getsockname()[1]}/")
    if workers == 1:
        app = create_app(directory, settings)
        settle_memory()
        make_server(app, settings).run([place])
        return
    Supervisor(directory, replace(settings, workers=workers), place).run()


def settle_memory() -> None:
    """Collect garbage often, and leave all objects that there are now out of it; called once the model is loaded.

    Each connection leaves a few objects that only a collection frees. A collection that also visits some 200,000
    objects of imported modules would keep all requests waiting.
    """
    gc.set_threshold(*COLLECT_AT)
    gc.collect()
    gc.freeze()
    gc.collect()  # Python delays full collections by the number of objects that the last one left


def make_server(app: Any, settings: ServeSettings, **options: Any) -> GracefulServer:
    """Return a server of an application, with the limits of the settings."""
    return GracefulServer(_config(app, settings, **options))


def _config(app: Any, settings: ServeSettings, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(LimitedProtocol, limits=settings.limits),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",  # whose way to accept connections the limits rely on
        lifespan="on",
        backlog=ACCEPT_AT_ONCE,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.limits.idle_seconds,  # type: ignore[arg-type]
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        **options,
    )


class Worker(Process):
    """A worker process; it ends when its supervisor is gone."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.supervisor = os.getpid()
        self.last_sign = time.monotonic()  # when the worker last answered, or was started
        self.patience = START_SECONDS

    @property
    def server(self) -> uvicorn.Server:
        """The server in the worker."""
        if self._server is None:
            self._server = GracefulServer(self.config)
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Run the server, in the worker."""
        self.parent_conn.close()  # with this copy open, the end of the supervisor would go unnoticed
        super().target(sockets)

    def always_pong(self) -> None:
        """Answer the supervisor's pings; stop the worker once it is gone."""
        with suppress(EOFError, OSError):
            super().always_pong()
        while os.getppid() == self.supervisor:  # it closes the pipe too when it stops the worker itself
            time.sleep(0.1)
        log_event("supervisor lost", logging.ERROR, process=os.getpid(), then="stopping")
        os.kill(os.getpid(), signal.SIGTERM)

    def answers(self) -> bool:
        """Return whether the worker lives and has answered lately; never waits for it."""
        if not self.process.is_alive():
            return False
        with suppress(OSError, EOFError):
            while self.parent_conn.poll(0):
                self.parent_conn.recv()
                self.last_sign, self.patience = time.monotonic(), HEALTHCHECK_SECONDS
            self.parent_conn.send(b"ping")
        return time.monotonic() - self.last_sign < self.patience


class Supervisor(Multiprocess):
    """Starts worker processes and replaces those that die; SIGHUP reloads the models inside the workers.

    Uvicorn's own supervisor would replace the workers on SIGHUP, which closes their connections, and wait for a worker
    that does not answer while it should stop.

    Parameters
    ----------
    directory
        Directory of the model.
    settings
        How to serve it.
    place
        The socket that all workers listen on.
    """

    def __init__(self, directory: Path, settings: ServeSettings, place: socket.socket) -> None:
        super().__init__(_config(None, settings, factory=True, workers=settings.workers), [place])
        self._directory, self._settings, self._block = directory, settings, CounterBlock(settings.workers)

    def _start_worker(self, slot: int) -> Worker:
        config = copy.copy(self.config)
        config.app = partial(_create_worker, self._directory, self._settings, self._block, slot)
        worker = Worker(config, self.sockets)
        worker.start()
        worker.child_conn.close()  # the worker's own end
        return worker

    def init_processes(self) -> None:
        """Start all workers."""
        self.processes = [self._start_worker(slot) for slot in range(self.processes_num)]

    def handle_signals(self) -> None:
        """Pass SIGHUP to all workers; a worker that is still starting blocks it until the model is loaded."""
        if signal.sigtimedwait({signal.SIGHUP}, 0) is not None:
            self.handle_hup()
        super().handle_signals()

    def handle_hup(self) -> None:
        """Reload in all workers; uvicorn calls this if a thread of a library, which does not block SIGHUP, got it."""
        for worker in self.processes:
            with suppress(ProcessLookupError):
                if worker.pid is not None:
                    os.kill(worker.pid, signal.SIGHUP)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died or hang, and remove them from the metrics of running workers."""
        for slot, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if not isinstance(worker, Worker) or worker.answers():
                continue
            worker.kill()
            worker.join()
            self._block.values[slot, GAUGES] = 0
            log_event("worker lost", logging.ERROR, process=worker.pid, then="replaced")
            self.processes[slot] = self._start_worker(slot)

    def terminate_all(self) -> None:
        """Stop all workers; once they have stopped listening, nobody does, and clients are told at once."""
        for place in self.sockets:
            place.close()
        super().terminate_all()


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


def _create_worker(directory: Path, settings: ServeSettings, block: CounterBlock, slot: int) -> FastAPI:
    """Return the application of a worker process.

    A worker that cannot load the model, because its folder was damaged since the start, tries again every 10 seconds
    and on SIGHUP. With an error instead, uvicorn would end the other workers, which still hold a valid model.
    """
    log_to_stderr()
    supervisor = os.getppid()
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # there are no requests to finish yet: end at once
    while True:
        try:
            app = create_app(
                directory,
                settings,
                notify_workers=lambda: os.kill(supervisor, signal.SIGHUP),
                block=block,
                slot=slot,
            )
        except Exception as error:
            known = isinstance(error, DpcmlError)
            log_event(
                "worker cannot start", logging.ERROR, process=os.getpid(), reason=str(error) if known else repr(error),
                error=None if known else error, then=f"tried again in {RETRY_SECONDS} s, or on SIGHUP",
            )  # fmt: skip
            signal.sigtimedwait({signal.SIGHUP}, RETRY_SECONDS)
        else:
            settle_memory()
            signal.signal(signal.SIGTERM, handler)
            return app
