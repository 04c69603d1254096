"""Answers to requests that cannot be met: a status, a short name, the reason, and what to do about it."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dpcml.utils.errors import DpcmlError, NothingLeftError, UnknownIdError


class PlainJson(Response):
    """JSON in ASCII, so that even an id that is no proper text can be sent; numbers that are none are a bug."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes to send."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Refused(HTTPException):
    """A request that is answered with a reason instead of a result."""

    def __init__(
        self, status: int, error: str, reason: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, reason, headers)
        self.error, self.reason, self.hint = error, reason, hint

    def response(self) -> PlainJson:
        """Return the answer."""
        return failure(self.status_code, self.error, self.reason, self.hint, dict(self.headers or {}))


def failure(status: int, error: str, reason: str, hint: str = "", headers: dict[str, str] | None = None) -> PlainJson:
    """Return an answer that says what is wrong.

    Examples
    --------
    >>> failure(404, "unknown_id", "unknown user 7", "search for users").body
    b'{"error":"unknown_id","reason":"unknown user 7","hint":"search for users"}'
    """
    return PlainJson({"error": error, "reason": reason, "hint": hint}, status, headers)


def too_large(limit: int) -> Refused:
    """Return the refusal of a body with more bytes than are taken."""
    return Refused(413, "too_large", f"the body is larger than {limit:,} bytes", "send fewer ids at a time")


def nothing_left(reason: str = "") -> Refused:
    """Return the refusal of filters that no item passes."""
    reason = reason or "no item is left to recommend: the filters and what is known already leave nothing"
    return Refused(422, "nothing_left", reason, "widen 'items' or 'where', or set 'exclude_seen' to false")


def handle_failures(app: FastAPI) -> None:
    """Give an application an answer to everything that may go wrong on the way to one."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(DpcmlError, _library)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error.response()


_HTTP = {
    400: ("malformed", "send a JSON object, as /openapi.json describes it"),
    404: ("no_such_path", "see /openapi.json for what there is"),
    405: ("method_not_allowed", "see /openapi.json for the methods of each path"),
}


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name, hint = _HTTP.get(error.status_code, ("http_error", ""))
    return failure(error.status_code, name, str(error.detail), hint, dict(error.headers or {}))


def _invalid(request: Request, error: Exception) -> Response:
    """Say which field is wrong and why, without sending back what was sent."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return failure(400, "malformed", "the body is no JSON", _HTTP[400][1])
    if any(one["loc"] == ("body",) for one in found) and "json" not in request.headers.get("content-type", ""):
        hint = "send a JSON object with the header 'Content-Type: application/json'"
        return failure(415, "not_json", "the body is missing or not declared as JSON", hint)
    reasons = [f"{'.'.join(str(part) for part in one['loc'][1:]) or 'body'}: {one['msg']}" for one in found[:5]]
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    return failure(422, "invalid", "; ".join(reasons) + more, "see /openapi.json for the fields and their limits")


def _library(request: Request, error: Exception) -> Response:
    if isinstance(error, UnknownIdError):
        hint = "find ids with /api/v1/users?q=... and /api/v1/items?q=...; someone new: /api/v1/recommend/new"
        return failure(404, "unknown_id", str(error), hint)
    if isinstance(error, NothingLeftError):
        return nothing_left(str(error)).response()
    return failure(422, "cannot", str(error), "see /api/v1/model for what the model can do")
