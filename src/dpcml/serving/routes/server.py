"""Routes for operators: the served models, reload, health, readiness and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from dpcml.serving import schemas
from dpcml.serving.errors import APIError, FastJSONResponse
from dpcml.serving.model_store import LoadedModel, ModelStore
from dpcml.serving.work import in_pool

api = APIRouter()  # under /api/v1
public = APIRouter()  # without a token
guarded = APIRouter()  # needs the token, if there is one

MAX_CATEGORIES = 500  # names of categories that /model lists


@api.get("/model", response_model=schemas.ModelList, summary="The served models")
@in_pool
def models(request: Request) -> Response:
    """Return each served model with its data, parameters and capabilities."""
    store: ModelStore = request.app.state.models
    models = [_model_json(name, loaded) for name, loaded in store.all().items()]
    return FastJSONResponse({"models": models, "feedback": request.app.state.feedback is not None})


@api.post(
    "/reload",
    response_model=schemas.ReloadResponse,
    responses={409: {"model": schemas.ErrorResponse, "description": "The folder is damaged; the old model stays."}},
    summary="Reload the models",
)
@in_pool
def reload(request: Request) -> Response:
    """Load the model directories again; requests in progress end with the model that they started with."""
    store: ModelStore = request.app.state.models
    store.reload()
    request.app.state.notify_workers()
    return FastJSONResponse({"models": store.fingerprints()})


@public.get("/health", response_model=schemas.HealthResponse, summary="Health")
async def health() -> Response:
    """Answer while the process runs."""
    return FastJSONResponse({"status": "alive"})


@public.get(
    "/ready",
    response_model=schemas.ReadyResponse,
    responses={503: {"model": schemas.ErrorResponse, "description": "The server is starting or stopping."}},
    summary="Readiness",
)
async def ready(request: Request) -> Response:
    """Answer whether the server takes requests, and how many workers run."""
    state = request.app.state
    if not state.ready:
        raise APIError(503, "not_ready", "the server is starting or stopping", "ask again in a moment")
    return FastJSONResponse(
        {"status": "ready", "workers": state.metrics.workers(), "workers_wanted": state.settings.workers}
    )


@guarded.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={401: {"model": schemas.ErrorResponse, "description": "The token is missing or wrong."}},
    summary="Metrics for Prometheus",
)
async def metrics(request: Request) -> Response:
    """Return all metrics in the text format of Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


def model_labels(store: ModelStore) -> list[dict[str, str]]:
    """Return the Prometheus labels of each served model."""
    return [
        {
            "name": name,
            "model": str(loaded.card["model"]),
            "fingerprint": loaded.fingerprint,
            "mark": loaded.fingerprint,  # old name, for one version
            "version": str(loaded.card["version"]),
        }
        for name, loaded in store.all().items()
    ]


def _model_json(name: str, loaded: LoadedModel) -> dict[str, Any]:
    train, card = loaded.model.train_, loaded.card
    attributes = train.items.attributes
    return {
        "name": name,
        "model": card["model"],
        "model_class": card["class"],
        "fingerprint": loaded.fingerprint,
        "mark": loaded.fingerprint,  # old name, for one version
        "version": card["version"],
        "created": card["created"],
        "loaded": loaded.loaded,
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "has_titles": train.items.titles is not None,
        "categories": [] if attributes is None else [str(one) for one in attributes.names[:MAX_CATEGORIES]],
        "parameters": card["parameters"],
        "example": loaded.example,
        "capabilities": loaded.capabilities,
        "able": loaded.capabilities,  # old name, for one version
    }
