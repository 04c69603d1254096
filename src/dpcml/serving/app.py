"""The web application. A factory makes it, so importing this module starts nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Security
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from dpcml.feedback import FeedbackJournal
from dpcml.serving.counters import CounterBlock
from dpcml.serving.direct import DirectRecommend, ListBatcher
from dpcml.serving.errors import APIError, add_error_handlers
from dpcml.serving.feedback import FeedbackStore
from dpcml.serving.middleware import RequestMiddleware, bearer
from dpcml.serving.model_store import ModelStore
from dpcml.serving.monitoring import Metrics, log_event
from dpcml.serving.routes import explore, recommend, server
from dpcml.serving.routes.responses import known_parameters
from dpcml.serving.schemas import ErrorResponse
from dpcml.serving.settings import ServeSettings
from dpcml.serving.work import Pools, WorkPool
from dpcml.utils.packages import version

API = "/api/v1"
SEARCHES_WAITING = 32  # further searches are answered with status 429
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body is not valid JSON."},
    401: {"model": ErrorResponse, "description": "The token is missing or wrong."},
    403: {"model": ErrorResponse, "description": "The request comes from another web site."},
    404: {"model": ErrorResponse, "description": "Unknown id or unknown model."},
    413: {"model": ErrorResponse, "description": "The body is too large."},
    415: {"model": ErrorResponse, "description": "The body is not declared as JSON."},
    422: {"model": ErrorResponse, "description": "A value is out of range, or the model cannot answer this request."},
    429: {"model": ErrorResponse, "description": "Too many requests wait; ask again later."},
}
CHANGING = (f"{API}/reload", f"{API}/feedback")  # not for other web sites


def create_app(
    directory: str | Path,
    settings: ServeSettings | None = None,
    *,
    notify_workers: Callable[[], None] = lambda: None,
    block: CounterBlock | None = None,
    slot: int = 0,
) -> FastAPI:
    """Return an ASGI application that serves the model in a directory.

    Parameters
    ----------
    directory
        A directory that `dpcml.save` or ``dpcml train`` wrote. SIGHUP and ``POST /api/v1/reload`` load it again.
    settings
        Token, second model, limits.
    notify_workers
        Called after ``POST /api/v1/reload``, to make the other worker processes reload too.
    block, slot
        The counters that worker processes share, and the number of this worker.

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
        description="Recommendation with several interests per user.",
        docs_url=None,  # FastAPI's documentation pages load scripts from other hosts
        redoc_url=None,
        lifespan=_lifespan,
    )
    guards = [] if settings.token is None else [Security(bearer)]
    for router in (recommend.router, explore.router, server.api):
        app.include_router(router, prefix=API, responses=ERRORS, dependencies=[*guards, Depends(known_parameters)])
    app.include_router(server.public)
    app.include_router(server.guarded, dependencies=guards)
    paths = app.openapi()["paths"]
    page = Path(str(resources.files("dpcml.serving") / "static"))

    async def index() -> FileResponse:
        return FileResponse(page / "index.html")

    app.add_api_route("/", index, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=page), name="page")
    add_error_handlers(app)
    metrics = Metrics(paths, settings.workers, lambda: server.model_labels(app.state.models), block, slot)
    directories = {"main": Path(directory)} | ({} if settings.compare is None else {"compare": settings.compare})
    app.state.models = ModelStore(directories, metrics.reloaded, settings.index)
    app.state.settings, app.state.metrics, app.state.ready = settings, metrics, False
    app.state.notify_workers = notify_workers
    journal = None if settings.feedback is None else FeedbackJournal(settings.feedback, settings.feedback_bytes)
    app.state.feedback = None if journal is None else FeedbackStore(journal)
    if app.state.feedback is not None and app.state.feedback.damaged:
        log_event("damaged feedback left out", logging.WARNING, lines=app.state.feedback.damaged)
    waiting = settings.limits.waiting
    app.state.pools = Pools(WorkPool(waiting), WorkPool(SEARCHES_WAITING, threads=1))
    app.state.batcher = ListBatcher(waiting)
    app.add_middleware(
        RequestMiddleware,
        metrics=metrics,
        settings=settings,
        pools=app.state.pools,
        changing=CHANGING,
        direct={f"{API}/recommend": DirectRecommend(app.state.models, app.state.batcher, app.state.feedback)},
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Handle SIGHUP, and report the server as ready, while it runs."""
    reloads: set[asyncio.Task[None]] = set()

    def on_hangup() -> None:
        task = asyncio.get_running_loop().create_task(_reload(app))
        reloads.add(task)  # asyncio itself holds tasks by weak references only
        task.add_done_callback(reloads.discard)

    with suppress(ValueError, RuntimeError, NotImplementedError):  # signals are available in the main thread only
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # `run` blocks it until the model is loaded
    app.state.ready = True
    app.state.metrics.set_running(True)
    log_event("started", process=os.getpid(), models=app.state.models.fingerprints())
    yield
    app.state.ready = False
    app.state.metrics.set_running(False)
    for pool in (*app.state.pools, app.state.batcher):
        pool.close()
    log_event("stopped", process=os.getpid())


async def _reload(app: FastAPI) -> None:
    with suppress(APIError):  # `ModelStore.reload` has logged it
        await asyncio.to_thread(app.state.models.reload)
