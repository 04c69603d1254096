"""Fingerprints of results: hashes of the code, the settings, the data and the split that made them.

A fingerprint is text such as ``3f2a91c0-77aa10b2-9c01d7e4-28e9fc0b``: the code of kernels, training and model, then all
settings, the content of the data, and the split. Parts that a result does not depend on are left out from the end.
Comments, docstrings and blank lines are no part of the code.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dpcml.models import MODELS
from dpcml.models.presets import PRESETS

LENGTH = 8  # hexadecimal digits of each part
# Modules whose code can change a figure, followed from the file of the model.
FOLLOWED = ("dpcml.kernels.", "dpcml.training.", "dpcml.models.", "dpcml.retrieval.exact")
# Parts of these packages that cannot: names, defaults (which the settings have), saving, progress bars, updates.
IGNORED = (
    "dpcml.models.base", "dpcml.models.parameters", "dpcml.models.partial", "dpcml.models.presets",
    "dpcml.training.checkpoint", "dpcml.training.progress",
)  # fmt: skip
TYPES = {"FitOptions", "TrainingError"}  # a module that is imported for these only is not followed
MEASURING = ("dpcml.evaluation.ranks", "dpcml.evaluation.metrics", "dpcml.evaluation.protocol")  # of every figure


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
    >>> model_code("dpcml2") == model_code("gfja"), model_code("dpcml2") == model_code("popularity")
    (True, False)
    """
    kind = PRESETS[model][0] if model in PRESETS else MODELS[model]
    return modules_hash(sources_of(kind.__module__))


def sources_of(module: str) -> tuple[str, ...]:
    """Return the modules whose code can change what the model in a module learns, and its figures.

    Examples
    --------
    >>> found = sources_of("dpcml.models.dpcml")
    >>> {"dpcml.models.multi_interest", "dpcml.training.init", "dpcml.kernels.mining"} <= set(found)
    True
    >>> "dpcml.training.init" in sources_of("dpcml.models.popularity")
    False
    """
    found: set[str] = set()
    todo = [module, *MEASURING]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for other in _imports(name) if other.startswith(FOLLOWED) and other not in IGNORED]
    return tuple(sorted(found))


@cache
def modules_hash(modules: tuple[str, ...]) -> str:
    """Return a hash of the code of modules."""
    return text_hash("\n".join(f"{name}\n{bare_code(_source(name))}" for name in modules))


def bare_code(source: str) -> str:
    r'''Return code without comments, docstrings and blank lines.

    Examples
    --------
    >>> bare_code('"""About."""\n\nx = 1  # why\n')
    'x = 1'
    '''
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [""] * ((first.end_lineno or 0) - first.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def changed(rows: Sequence[str | None]) -> bool:
    """Return whether fingerprints of runs of one row, which differ in the seed alone, are of different makings.

    Examples
    --------
    >>> changed(["a-b-c-1", "a-b-c-2"]), changed(["a-b-c-1", "x-b-c-2"]), changed([None, None])
    (False, True, False)
    """
    return len({making(row) for row in rows}) > 1


@cache
def _source(module: str) -> str:
    return _path(module).read_text(encoding="utf-8")


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:  # not reached for modules of ours
        raise ModuleNotFoundError(module)
    return Path(spec.origin)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return the modules of ours that a module imports, anywhere in its code."""
    found = []
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not {name.name for name in node.names} <= TYPES:
            found += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return tuple(name for name in found if name.startswith("dpcml.") and _is_module(name))


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
