"""Fingerprints of results: hashes of the code, the settings, the data and the split that made them.

A fingerprint is text such as ``3f2a91c0-77aa10b2-9c01d7e4-28e9fc0b``: the code that the run reaches (see
`dpcml.paper.reached_code`), then all settings, the content of the data, and the split. Parts that a result does not
depend on are left out from the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

from dpcml.models import MODELS
from dpcml.models.presets import PRESETS
from dpcml.paper.reached_code import LENGTH, code_hash, module_hash

RUN = ("dpcml.paper.runs", "train_and_measure")  # what trains and measures every model


def join(code: str, *others: str) -> str:
    """Return a fingerprint of parts, each shortened.

    Examples
    --------
    >>> join("0123456789", "abcdefghijk")
    '01234567-abcdefgh'
    """
    return "-".join(part[:LENGTH] for part in (code, *others))


def fits(kept: str | None, expected: str) -> bool:
    """Return whether a result has the expected fingerprint, as far as this is known; without one it does not.

    Examples
    --------
    >>> fits("01234567-abcdefgh-77777777", "01234567-abcdefgh"), fits("01234567", "76543210"), fits(None, "01234567")
    (True, False, False)
    """
    return bool(kept) and str(kept).split("-")[: expected.count("-") + 1] == expected.split("-")


def making(kept: str | None) -> str:
    """Return the parts of a fingerprint that all seeds of a row share: code, settings and data; empty without one.

    Examples
    --------
    >>> making("01234567-abcdefgh-76543210-hgfedcba"), making(None)
    ('01234567-abcdefgh-76543210', '')
    """
    return "-".join((kept or "").split("-")[:3])


def text_hash(text: str) -> str:
    """Return a hash of a text.

    Examples
    --------
    >>> len(text_hash("a")), text_hash("a") == text_hash("b")
    (8, False)
    """
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


@cache
def model_code(model: str) -> str:
    """Return a hash of the code that trains and scores a model, given by the name of a model or preset.

    Examples
    --------
    >>> model_code("dpcml2") == model_code("dpcml1"), model_code("dpcml2") == model_code("popularity")
    (True, False)
    """
    kind = PRESETS[model][0] if model in PRESETS else MODELS[model]
    return code_hash([(kind.__module__, kind.__name__), RUN])


@cache
def modules_hash(modules: tuple[str, ...]) -> str:
    """Return a hash of the code of whole modules, of figures that no model makes."""
    return text_hash("".join(map(module_hash, modules)))


def changed(rows: Sequence[str | None]) -> bool:
    """Return whether fingerprints of runs of one row, which differ in the seed alone, are of different makings.

    Examples
    --------
    >>> changed(["a-b-c-1", "a-b-c-2"]), changed(["a-b-c-1", "x-b-c-2"]), changed([None, None])
    (False, True, False)
    """
    return len({making(row) for row in rows}) > 1
