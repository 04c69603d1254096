"""The version that results carry."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """Return the version of the installed package.

    Examples
    --------
    >>> version().count(".") >= 1
    True
    """
    from importlib.metadata import version as installed

    return installed("dpcml")
