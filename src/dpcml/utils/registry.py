"""A registry: models, readers, protocols or data sets by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

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
