"""The errors a user can act on: each message names the value, the rule and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DpcmlError(Exception):
    """Base of every error that dpcml raises on purpose; the command line turns it into exit code 2."""


class DataError(DpcmlError, ValueError):
    """Data that cannot be used as it is."""


class ParameterError(DpcmlError, ValueError):
    """A parameter outside its range, unknown, or in contradiction with another one."""


class NothingLeftError(ParameterError):
    """Filters that no item passes."""


class UnknownIdError(DpcmlError, LookupError):
    """A user or an item that the data does not contain."""


class NotFittedError(DpcmlError, AttributeError):
    """A model was asked for something it can only know after ``fit``."""


class DownloadError(DpcmlError, OSError):
    """A named data set could not be fetched."""


class MissingExtraError(DpcmlError, ImportError):
    """An optional dependency is not installed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known names are closest to a mistyped one.

    Examples
    --------
    >>> did_you_mean("eaze", ["ease", "itemknn"])
    "did you mean 'ease'?"
    >>> did_you_mean("xyz", ["ease", "itemknn"])
    'known: ease, itemknn'
    """
    spelled = {one.lower(): one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), spelled, n=1)
    return f"did you mean {spelled[near[0]]!r}?" if near else f"known: {', '.join(sorted(spelled.values()))}"
