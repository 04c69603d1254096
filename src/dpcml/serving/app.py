"""The application: made by a factory, so that importing starts nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import Depends, FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from dpcml.serving.access import allowed
from dpcml.serving.crew import Crew
from dpcml.serving.failures import Refused, handle_failures
from dpcml.serving.logs import say
from dpcml.serving.metrics import Metrics
from dpcml.serving.routes import catalogue, lists, people, state
from dpcml.serving.schemas import Problem
from dpcml.serving.served import Shelf
from dpcml.serving.settings import ServeSettings, threads_for_work
from dpcml.serving.watch import Watch
from dpcml.utils.packages import version

API = "/api/v1"
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is no JSON."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    404: {"model": Problem, "description": "An id, or the model, is unknown."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The body is not declared as JSON."},
    422: {"model": Problem, "description": "A value is out of its limits, or the model cannot do this."},
}


def create_app(
    directory: str | Path, settings: ServeSettings | None = None, *, tell_others: Callable[[], None] = lambda: None
) -> FastAPI:
    """Return an application that serves the model in a directory.

    Parameters
    ----------
    directory
        Where `dpcml.save` or ``dpcml train`` wrote a model; it is read anew on SIGHUP or ``POST /api/v1/reload``.
    settings
        Token, second model, limits.
    tell_others
        Called after a reload that was asked for by a request: tells the other processes of the same server.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import ItemKNN, save
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(ItemKNN(k=2).fit(np.kron(np.eye(2), np.ones((3, 4)))), Path(place) / "knn")
    ...     app = create_app(folder)
    >>> "/api/v1/recommend" in app.openapi()["paths"]
    True
    """
    settings = settings or ServeSettings()
    app = FastAPI(
        title="dpcml",
        version=version(),
        description="Recommendation for people with more than one interest.",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=_life,
    )
    guards = [] if settings.token is None else [Depends(allowed)]
    for part in (lists, people, catalogue):
        app.include_router(part.router, prefix=API, responses=PROBLEMS, dependencies=guards)
    app.include_router(state.router)
    app.include_router(state.guarded, dependencies=guards)
    paths = app.openapi()["paths"]
    page = Path(str(resources.files("dpcml.serving") / "static"))
    app.add_api_route("/", lambda: FileResponse(page / "index.html"), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=page), name="page")
    handle_failures(app)
    crew = Crew(settings.shared, settings.workers)
    metrics = Metrics(paths, None if settings.shared is None else settings.shared / "counters", crew)
    directories = {"main": Path(directory)} | ({} if settings.compare is None else {"compare": settings.compare})
    app.state.settings, app.state.metrics, app.state.ready = settings, metrics, False
    app.state.tell_others, app.state.crew = tell_others, crew
    app.state.shelf = Shelf(directories, metrics.count_reload, settings.index)
    app.add_middleware(Watch, metrics=metrics, max_body=settings.max_body, log_requests=settings.log_requests)
    return app


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """Take signals while the server lives."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads_for_work()
    running: set[asyncio.Task[None]] = set()

    def hang_up() -> None:
        task = asyncio.get_running_loop().create_task(_reload(app))
        running.add(task)  # a task that nobody holds may vanish
        task.add_done_callback(running.discard)

    with suppress(ValueError, RuntimeError, NotImplementedError):  # outside of the main thread there are no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # `run` blocks it while the model is loaded
    app.state.ready = True
    app.state.crew.join()
    say("started", process=os.getpid(), models={name: one.mark for name, one in app.state.shelf.all().items()})
    yield
    app.state.ready = False
    app.state.crew.leave()
    say("stopped", process=os.getpid())


async def _reload(app: FastAPI) -> None:
    with suppress(Refused):  # it is in the log
        await asyncio.to_thread(app.state.shelf.reload)
