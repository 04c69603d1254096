"""Things found by name: models, readers, protocols, data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dpcml.utils.errors import ParameterError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from names to things in the order they were filed.

    Parameters
    ----------
    kind
        What the things are, for error messages: ``"model"``, ``"protocol"``.

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
        self._things: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files a thing under ``name``."""

        def file(thing: T) -> T:
            self.add(name, thing)
            return thing

        return file

    def add(self, name: str, thing: T) -> None:
        """File a thing under a name that is still free."""
        if name in self._things:
            raise ParameterError(f"{self.kind} {name!r} is registered already: choose another name")
        self._things[name] = thing

    def __getitem__(self, name: str) -> T:
        try:
            return self._things[name]
        except KeyError:
            raise ParameterError(f"unknown {self.kind} {name!r}: {did_you_mean(str(name), self)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
