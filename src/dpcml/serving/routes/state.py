"""What operators ask: does it live, is it ready, how much does it do."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from dpcml.serving import schemas
from dpcml.serving.crew import Crew
from dpcml.serving.failures import PlainJson, Refused
from dpcml.serving.served import Shelf

router = APIRouter()
guarded = APIRouter()  # not for everybody, where there is a token


@router.get("/health", response_model=schemas.Alive, summary="Alive?")
async def health() -> Response:
    """Answer while the process lives."""
    return PlainJson({"status": "alive"})


@router.get(
    "/ready",
    response_model=schemas.Ready,
    responses={503: {"model": schemas.Problem, "description": "Starting or stopping."}},
    summary="Ready for requests?",
)
async def ready(request: Request) -> Response:
    """Answer whether requests should be sent here, and how many processes are there to take them."""
    if not request.app.state.ready:
        raise Refused(503, "not_ready", "the server is starting or stopping", "ask again in a moment")
    crew: Crew = request.app.state.crew
    return PlainJson({"status": "ready", "workers": crew.serving, "workers_wanted": crew.wanted})


@guarded.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={401: {"model": schemas.Problem, "description": "The token is missing or wrong."}},
    summary="Counters for Prometheus",
)
async def metrics(request: Request) -> Response:
    """Return counters in the text format of Prometheus."""
    shelf: Shelf = request.app.state.shelf
    models = [
        {"name": name, "model": str(one.card["model"]), "mark": one.mark, "version": str(one.card["version"])}
        for name, one in shelf.all().items()
    ]
    return PlainTextResponse(request.app.state.metrics.text(models), media_type="text/plain; version=0.0.4")
