"""The web application. A factory makes it, so importing this module starts nothing."""

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

from dpcml.serving.errors import APIError, add_error_handlers
from dpcml.serving.middleware import RequestMiddleware, check_token
from dpcml.serving.model_store import ModelStore
from dpcml.serving.monitoring import Metrics, log_event
from dpcml.serving.routes import explore, recommend, server
from dpcml.serving.schemas import ErrorResponse
from dpcml.serving.settings import ServeSettings
from dpcml.utils.packages import version

API = "/api/v1"
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body is not valid JSON."},
    401: {"model": ErrorResponse, "description": "The token is missing or wrong."},
    404: {"model": ErrorResponse, "description": "Unknown id or unknown model."},
    413: {"model": ErrorResponse, "description": "The body is too large."},
    415: {"model": ErrorResponse, "description": "The body is not declared as JSON."},
    422: {"model": ErrorResponse, "description": "A value is out of range, or the model cannot answer this request."},
}


def create_app(
    directory: str | Path, settings: ServeSettings | None = None, *, notify_workers: Callable[[], None] = lambda: None
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
    guards = [] if settings.token is None else [Depends(check_token)]
    for routes in (recommend, explore):
        app.include_router(routes.router, prefix=API, responses=ERRORS, dependencies=guards)
    app.include_router(server.api, prefix=API, responses=ERRORS, dependencies=guards)
    app.include_router(server.public)
    app.include_router(server.guarded, dependencies=guards)
    paths = app.openapi()["paths"]
    page = Path(str(resources.files("dpcml.serving") / "static"))
    app.add_api_route("/", lambda: FileResponse(page / "index.html"), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=page), name="page")
    add_error_handlers(app)
    metrics = Metrics(paths, settings.workers, lambda: server.model_labels(app.state.models))
    directories = {"main": Path(directory)} | ({} if settings.compare is None else {"compare": settings.compare})
    app.state.models = ModelStore(directories, lambda outcome: metrics.reloads.labels(outcome).inc(), settings.index)
    app.state.settings, app.state.metrics, app.state.ready = settings, metrics, False
    app.state.notify_workers = notify_workers
    app.add_middleware(
        RequestMiddleware, metrics=metrics, max_body=settings.max_body, log_requests=settings.log_requests
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Handle SIGHUP, and report the server as ready, while it runs."""
    # Requests that compute run on this many threads; more would only compete for the cores.
    anyio.to_thread.current_default_thread_limiter().total_tokens = 2 * (os.cpu_count() or 1)
    reloads: set[asyncio.Task[None]] = set()

    def on_hangup() -> None:
        task = asyncio.get_running_loop().create_task(_reload(app))
        reloads.add(task)  # asyncio itself holds tasks by weak references only
        task.add_done_callback(reloads.discard)

    with suppress(ValueError, RuntimeError, NotImplementedError):  # signals are available in the main thread only
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # `run` blocks it until the model is loaded
    app.state.ready = True
    app.state.metrics.worker.set(1)
    log_event("started", process=os.getpid(), models=app.state.models.fingerprints())
    yield
    app.state.ready = False
    app.state.metrics.worker.set(0)
    log_event("stopped", process=os.getpid())


async def _reload(app: FastAPI) -> None:
    with suppress(APIError):  # `ModelStore.reload` has logged it
        await asyncio.to_thread(app.state.models.reload)
