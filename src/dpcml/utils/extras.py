"""Optional dependencies: imported where they are used, with a word on how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from dpcml.utils.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Examples
    --------
    >>> require("json", extra="plots").dumps(1)
    '1'
    >>> require("no_such_module", extra="plots")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.MissingExtraError: no_such_module is not installed: pip install 'dpcml[plots]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise  # the module is there, but something that it needs is not
        raise MissingExtraError(f"{error.name} is not installed: pip install 'dpcml[{extra}]'") from None
