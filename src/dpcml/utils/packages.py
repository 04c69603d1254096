"""Installed packages: the version of dpcml, and imports of optional dependencies."""

from __future__ import annotations

import importlib
from functools import cache
from importlib import metadata
from types import ModuleType

from dpcml.utils.errors import MissingExtraError


@cache
def version() -> str:
    """Return the version of the installed dpcml package.

    Examples
    --------
    >>> version().count(".") >= 1
    True
    """
    return metadata.version("dpcml")


__version__ = version()


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module; the error for a missing one names the extra that installs it.

    Parameters
    ----------
    module
        Dotted name of the module.
    extra
        Extra of dpcml that lists the module's package.

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
            raise  # the module is installed, but one of its own dependencies is not
        raise MissingExtraError(f"{error.name} is not installed: pip install 'dpcml[{extra}]'") from None
