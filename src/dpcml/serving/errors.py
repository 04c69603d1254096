"""Error responses: a status, a short code, the reason and a hint what to do."""

from __future__ import annotations

import json
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dpcml.utils.errors import DpcmlError, NothingLeftError, UnknownIdError

SHOWN_ERRORS = 5  # invalid fields that one response names


def to_json(content: Any) -> bytes:
    r"""Return plain data as JSON. Ids may hold lone surrogates, which UTF-8 has no bytes for: they are escaped.

    Examples
    --------
    >>> to_json({"id": 7, "title": "Amélie"}).decode()
    '{"id":7,"title":"Amélie"}'
    >>> to_json("\ud800")
    b'"\\ud800"'
    """
    try:
        return orjson.dumps(content)
    except TypeError:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class FastJSONResponse(Response):
    """A JSON response, written by orjson."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the encoded body."""
        return to_json(content)


class APIError(HTTPException):
    """An error that the server reports to the client.

    Parameters
    ----------
    status
        HTTP status code.
    error
        Short code for programs, such as ``unknown_id``.
    reason
        What is wrong.
    hint
        What the client can do.
    headers
        Headers of the response.

    Examples
    --------
    >>> APIError(404, "unknown_id", "unknown user 7", "search for users").response().body
    b'{"error":"unknown_id","reason":"unknown user 7","hint":"search for users"}'
    """

    def __init__(
        self, status: int, error: str, reason: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, reason, headers)
        self.error, self.reason, self.hint = error, reason, hint

    def response(self) -> FastJSONResponse:
        """Return the response to send."""
        content = {"error": self.error, "reason": self.reason, "hint": self.hint}
        return FastJSONResponse(content, self.status_code, dict(self.headers or {}))


def body_too_large(limit: int) -> APIError:
    """Return the error for a request body of more than ``limit`` bytes."""
    return APIError(413, "too_large", f"the body is larger than {limit:,} bytes", "send fewer ids per request")


def no_items_left(reason: str = "") -> APIError:
    """Return the error for a request whose filters leave no item to recommend."""
    reason = reason or "no item is left to recommend: the filters exclude every item that the user has not seen"
    return APIError(422, "nothing_left", reason, "widen 'items' or 'where', or set 'exclude_seen' to false")


def add_error_handlers(app: FastAPI) -> None:
    """Make an application answer every expected exception with an error response."""
    app.add_exception_handler(APIError, _api_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(DpcmlError, _library_error)


def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, APIError)
    return error.response()


_HTTP = {
    400: ("malformed", "send a JSON object as /openapi.json describes it"),
    404: ("no_such_path", "see /openapi.json for the available paths"),
    405: ("method_not_allowed", "see /openapi.json for the methods of each path"),
}


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, hint = _HTTP.get(error.status_code, ("http_error", ""))
    return APIError(error.status_code, code, str(error.detail), hint, dict(error.headers or {})).response()


def _validation_error(request: Request, error: Exception) -> Response:
    """Name the invalid fields without repeating their values, which may be personal."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return APIError(400, "malformed", "the body is not valid JSON", _HTTP[400][1]).response()
    if any(one["loc"] == ("body",) for one in found) and "json" not in request.headers.get("content-type", ""):
        hint = "send a JSON object with the header 'Content-Type: application/json'"
        return APIError(415, "not_json", "the body is missing or not declared as JSON", hint).response()
    fields: dict[str, list[str]] = {}  # by reason
    for one in found[:SHOWN_ERRORS]:
        fields.setdefault(one["msg"], []).append(".".join(str(part) for part in one["loc"][1:]) or "body")
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in fields.items()]
    more = f"; and {len(found) - SHOWN_ERRORS} more" if len(found) > SHOWN_ERRORS else ""
    hint = "see /openapi.json for the fields and their limits"
    return APIError(422, "invalid", "; ".join(reasons) + more, hint).response()


def _library_error(request: Request, error: Exception) -> Response:
    return library_error(error).response()


def library_error(error: Exception) -> APIError:
    """Return what the server answers when the library raises an error."""
    if isinstance(error, UnknownIdError):
        hint = "find ids with /api/v1/users?q=... and /api/v1/items?q=...; for a new user: /api/v1/recommend/new"
        return APIError(404, "unknown_id", str(error), hint)
    if isinstance(error, NothingLeftError):
        return no_items_left(str(error))
    return APIError(422, "cannot", str(error), "see the capabilities of the model at /api/v1/model")
