"""Who may call, and which model answers."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from dpcml.serving.failures import Refused
from dpcml.serving.served import Served

bearer = HTTPBearer(auto_error=False, description="The token that the server was started with, if any.")


def allowed(request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None) -> None:
    """Refuse a request without the token; the comparison takes the same time for all."""
    token: str = request.app.state.settings.token
    sent = b"" if given is None else given.credentials.encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(sent, token.encode()):
        raise Refused(
            401,
            "unauthorized",
            "the token is missing or wrong",
            "send the header 'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )


def chosen(
    request: Request,
    model: Annotated[str, Query(description="main, or compare where there is a second model.")] = "main",
) -> Served:
    """Return the model that a request names."""
    served: Served = request.app.state.shelf.get(model)
    return served


Chosen = Annotated[Served, Depends(chosen)]
