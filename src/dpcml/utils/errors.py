"""Exceptions of dpcml. Each message names the value, the rule and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DpcmlError(Exception):
    """Base class of all errors that dpcml raises on purpose; the command line exits with code 2."""


class DataError(DpcmlError, ValueError):
    """Data, or a file, that is invalid."""


class ParameterError(DpcmlError, ValueError):
    """A parameter that is unknown, out of range, or in conflict with another one."""


class NothingLeftError(ParameterError):
    """No item passes the filters of a request."""


class NoInterestsError(ParameterError, AttributeError):
    """A model without interests was asked for them."""


class UnknownIdError(DpcmlError, LookupError):
    """A user or item id that is not in the training data."""


class NotFittedError(DpcmlError, AttributeError):
    """A method that needs a fitted model was called before ``fit``."""


class DownloadError(DpcmlError, OSError):
    """A data set could not be downloaded."""


class MissingExtraError(DpcmlError, ImportError):
    """An optional dependency is not installed."""


class RecoveryWarning(UserWarning):
    """Something on disk is missing or damaged, and something else that is sound is used in its place."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the most similar known name, or all known names.

    Examples
    --------
    >>> did_you_mean("eaze", ["ease", "itemknn"])
    "did you mean 'ease'?"
    >>> did_you_mean("xyz", ["ease", "itemknn"])
    'known: ease, itemknn'
    >>> did_you_mean("epoch", ["dpcml__epochs", "weights"])  # a parameter of a member, which has a short name too
    "did you mean 'epochs'?"
    """
    spelled = {one.lower(): one for one in sorted(known, reverse=True)}
    short = {one.rpartition("__")[2] for one in spelled.values()}
    near = difflib.get_close_matches(name.lower(), {**spelled, **{one.lower(): one for one in short}}, n=1)
    if near:
        return f"did you mean {spelled.get(near[0], near[0])!r}?"
    return f"known: {', '.join(sorted(spelled.values()))}"
