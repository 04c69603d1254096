"""Old names of arguments: they work for one more version, with a warning that says the new name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dpcml.utils.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")


def rename_arguments(
    owner: str, given: Mapping[str, Any], names: Mapping[str, str], *, stacklevel: int = 3
) -> dict[str, Any]:
    """Return keyword arguments under their new names, with a warning for each old one.

    Parameters
    ----------
    owner
        Who takes the arguments, for messages.
    given
        Keyword arguments by name.
    names
        New names by old ones.
    stacklevel
        Frames up to the caller who is to blame.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True):
    ...     rename_arguments("evaluate", {"at": [5]}, {"at": "k"})
    {'k': [5]}
    """
    found = dict(given)
    for old, new in names.items():
        if old in found:
            if new in found:
                raise ParameterError(f"{owner}: {old} is the old name of {new}; pass only {new}")
            warnings.warn(
                f"{owner}: {old} is called {new} now; the old name goes in the next version",
                FutureWarning,
                stacklevel=stacklevel,
            )
            found[new] = found.pop(old)
    return found


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that lets a function take keyword arguments by their old names too.

    Parameters
    ----------
    **names
        New names by old ones: ``@renamed(at="k")``.

    Examples
    --------
    >>> @renamed(at="k")
    ... def cut(values, k):
    ...     return values[:k]
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     cut("abc", at=2), str(told[0].message)
    ('ab', 'cut: at is called k now; the old name goes in the next version')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            if names.keys() & given.keys():
                return function(*args, **rename_arguments(function.__name__, given, names))
            return function(*args, **given)

        return call

    return decorate
