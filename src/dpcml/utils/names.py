"""Names: registries of models, readers or data sets, and arguments that have a new name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from dpcml.utils.errors import ParameterError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from names to entries, in the order of registration.

    Parameters
    ----------
    kind
        What the entries are, for error messages: ``"model"``, ``"protocol"``.

    Examples
    --------
    >>> shapes = Registry("shape")
    >>> @shapes.register("square")
    ... def square(): ...
    >>> shapes["square"] is square, list(shapes)
    (True, ['square'])
    >>> shapes["squares"]
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown shape 'squares': did you mean 'square'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers its argument as ``name``."""

        def decorate(entry: T) -> T:
            self.add(name, entry)
            return entry

        return decorate

    def add(self, name: str, entry: T) -> None:
        """Register an entry; a name that is taken raises `ParameterError`."""
        if name in self._entries:
            raise ParameterError(f"{self.kind} {name!r} is already registered: choose another name")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except KeyError:
            raise ParameterError(f"unknown {self.kind} {name!r}: {did_you_mean(str(name), self)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


P = ParamSpec("P")
R = TypeVar("R")


def rename_arguments(
    owner: str, given: Mapping[str, Any], names: Mapping[str, str], *, stacklevel: int = 3
) -> dict[str, Any]:
    """Return keyword arguments with old names replaced by new ones; warn about each old name.

    Parameters
    ----------
    owner
        Name of the function or class, for messages.
    given
        Keyword arguments as the caller passed them.
    names
        New name for each old name.
    stacklevel
        As for `warnings.warn`: the frame that the warning points to.

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
                f"{owner}: {old} is deprecated, use {new}; the next version removes the old name",
                FutureWarning,
                stacklevel=stacklevel,
            )
            found[new] = found.pop(old)
    return found


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that makes a function accept the old names of its keyword arguments.

    Parameters
    ----------
    **names
        New name for each old name: ``@renamed(at="k")``.

    Examples
    --------
    >>> @renamed(at="k")
    ... def cut(values, k):
    ...     return values[:k]
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     cut("abc", at=2), str(told[0].message)
    ('ab', 'cut: at is deprecated, use k; the next version removes the old name')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            if names.keys() & given.keys():
                return function(*args, **rename_arguments(function.__name__, given, names))
            return function(*args, **given)

        return call

    return decorate
