"""The code that a model runs from `fit` to its figures, found in the sources without running them.

Code is followed function by function, from the methods that a run calls. What counts is the set of functions, methods
and assignments that are reached, as text without comments, docstrings and annotations. Where they stand does not count:
code that moves to another file or class, or a file that is split, leaves the same set. Nor does code beside it: lists,
reasons, saving and updates of a model are never reached from training and scores.

Calls on objects are followed by the name of the method, in every class that is reached. That is more than runs, never
less, as long as no method is looked up by a name that is computed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

LENGTH = 8  # hexadecimal digits of a hash
# Packages and modules whose code can change a figure. Data, settings and the split are hashed by content.
FOLLOWED = (
    "dpcml.kernels.", "dpcml.training.", "dpcml.models.", "dpcml.evaluation.", "dpcml.retrieval.aspects",
    "dpcml.retrieval.exact", "dpcml.retrieval.rerank", "dpcml.utils.arrays", "dpcml.paper.runs",
)  # fmt: skip
# Parts of these whose functions cannot: compilation, names and defaults (which the settings have), saving, progress
# bars. Their constants can: flags of the compiler are among them.
IGNORED = (
    "dpcml.kernels.compilation", "dpcml.kernels.barrier", "dpcml.models.parameters", "dpcml.models.presets",
    "dpcml.training.checkpoint", "dpcml.training.progress", "dpcml.training.tracking", "dpcml.evaluation.report",
    "dpcml.evaluation.compare",
)  # fmt: skip
# Methods that a run calls on a model, and those that Python calls by itself.
CALLED = frozenset({"fit", "_fit", "_check", "score", "__init__", "__post_init__", "__call__"})

ADDING = frozenset({"add", "register"})  # methods of a registry

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Unit:
    """A piece of code: a function, a method, or a statement of a module or a class."""

    text: str  # without comments, docstrings and annotations
    names: frozenset[str]  # that it reads
    attributes: frozenset[str]  # that it reads of objects
    constant: bool = False  # an assignment


@dataclass(frozen=True)
class ReachedClass:
    """A class: its statements, its methods by name, and the names that its head reads (bases, decorators)."""

    statements: tuple[Unit, ...]
    methods: dict[str, Unit]
    head: Unit


@dataclass(frozen=True)
class Source:
    """What the top level of a module defines."""

    units: dict[str, tuple[Unit, ...]]  # functions, assignments and registrations by the name that they belong to
    classes: dict[str, ReachedClass]
    imports: dict[str, tuple[str, str]]  # name here: module and name there; an empty name is the module itself


def code_hash(roots: Iterable[tuple[str, str]]) -> str:
    """Return a hash of the code that is reached from classes and functions, given by module and name.

    Examples
    --------
    >>> one = code_hash([("dpcml.models.dpcml", "CML")])
    >>> one == code_hash([("dpcml.models.popularity", "Popularity")]), len(one)
    (False, 8)
    """
    text = "\n".join(sorted(reached(roots)))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def reached(roots: Iterable[tuple[str, str]]) -> set[str]:
    """Return the texts of all code that is reached.

    Examples
    --------
    >>> found = reached([("dpcml.models.popularity", "Popularity")])
    >>> any("def recommend(" in text for text in found), any("def rank_counts(" in text for text in found)
    (False, False)
    """
    found: set[str] = set()
    todo = [(module, name) for module, name in roots]
    seen: set[tuple[str, str]] = set()
    called = set(CALLED)
    waiting: list[tuple[str, str, Unit]] = []  # methods of reached classes that nothing reached has called yet

    def add(module: str, unit: Unit) -> None:
        if unit.text:
            found.add(unit.text)
        called.update(unit.attributes)
        todo.extend((module, name) for name in unit.names)

    while todo or any(name in called for _, name, _ in waiting):
        ready = [one for one in waiting if one[1] in called]
        waiting = [one for one in waiting if one[1] not in called]
        for module, _, unit in ready:
            add(module, unit)
        while todo:
            module, name = todo.pop()
            module, name = _origin(module, name)
            if (module, name) in seen or not module.startswith(FOLLOWED):
                continue
            seen.add((module, name))
            source = _source(module)
            for unit in source.units.get(name, ()):
                if unit.constant or _is_followed(module):
                    add(module, unit)
            if not _is_followed(module):
                continue
            if name in source.classes:
                found_class = source.classes[name]
                todo.extend((module, used) for used in found_class.head.names)
                for unit in found_class.statements:
                    add(module, unit)
                waiting += [(module, method, unit) for method, unit in found_class.methods.items()]
    return found


def module_hash(module: str) -> str:
    """Return a hash of all code of one module.

    Examples
    --------
    >>> module_hash("dpcml.theory") == module_hash("dpcml.demo")
    False
    """
    source = _source(module)
    units = [unit for found in source.units.values() for unit in found]
    for found in source.classes.values():
        units += [*found.statements, *found.methods.values()]
    text = "\n".join(sorted({unit.text for unit in units}))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _is_followed(module: str) -> bool:
    return module.startswith(FOLLOWED) and module not in IGNORED


def _origin(module: str, name: str) -> tuple[str, str]:
    """Return where a name is defined: names that a module imports lead to another one."""
    for _ in range(10):  # imports of imports
        if not module.startswith(FOLLOWED):
            break
        here, _, there = name.partition(".")  # a name, or an attribute of a module
        target = _source(module).imports.get(here)
        if target is None or not target[0].startswith("dpcml") or bool(there) != (not target[1]):
            break
        module, name = target[0], target[1] or there
    return module, name


@cache
def _source(module: str) -> Source:
    spec = find_spec(module)
    if spec is None or spec.origin is None:  # not reached for modules of ours
        raise ModuleNotFoundError(module)
    return parse_source(Path(spec.origin).read_text(encoding="utf-8"))


def parse_source(text: str) -> Source:
    r"""Return what the top level of a module's text defines.

    Examples
    --------
    >>> found = parse_source("from a import b\n\ndef f(x: int) -> int:\n    '''About.'''\n    return b(x)  # why\n")
    >>> found.units["f"][0].text
    'def f(x):\n    return b(x)'
    >>> sorted(found.units["f"][0].names), found.imports["b"]
    (['b', 'x'], ('a', 'b'))
    """
    units: dict[str, tuple[Unit, ...]] = {}
    classes: dict[str, ReachedClass] = {}
    imports: dict[str, tuple[str, str]] = {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                target = f"{node.module}.{alias.name}"
                module = (target, "") if _is_module(target) else (node.module, alias.name)
                imports[alias.asname or alias.name] = module
    adding = {node.name: set(_registries(node)) for node in tree.body if isinstance(node, _Function)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = _class(node)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_text(node):
            owners = set(_owners(node, adding))
            unit = _unit(node)
            for name in owners:
                units[name] = (*units.get(name, ()), unit)
    return Source(units, classes, imports)


def _owners(node: ast.stmt, adding: dict[str, set[str]]) -> Iterator[str]:
    """Yield the names that a statement belongs to: those that it binds, and registries that it adds something to.

    ``adding`` has the registries that each function of the module adds to: a call of one at the top level does too.
    """
    if isinstance(node, _Function):
        yield node.name
        for decorator in node.decorator_list:
            yield from _registries(decorator)
        return
    yield from _registries(node)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            yield from adding.get(inner.func.id, ())


def _registries(node: ast.AST) -> Iterator[str]:
    """Yield X of every ``X.add(...)`` and ``X.register(...)``."""
    for inner in ast.walk(node):
        called = inner.func if isinstance(inner, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ADDING and isinstance(called.value, ast.Name):
            yield called.value.id


def _class(node: ast.ClassDef) -> ReachedClass:
    methods = {one.name: _unit(one) for one in node.body if isinstance(one, _Function)}
    others = [one for one in node.body if not isinstance(one, _Function) and not _is_text(one)]
    if "_check" in methods:  # a model: its fields are settings, which have a hash of their own
        others = [one for one in others if not isinstance(one, ast.AnnAssign) or _is_of_class(one)]
    statements = tuple(_unit(one) for one in others)
    head = _unit(ast.Tuple([*node.bases, *node.decorator_list], ast.Load()))
    return ReachedClass(statements, methods, head)


def _is_of_class(node: ast.AnnAssign) -> bool:
    return "ClassVar" in ast.unparse(node.annotation)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Bare(ast.NodeTransformer):
    """Removes docstrings and annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _unit(node: ast.AST) -> Unit:
    bare = _Bare().visit(node)
    if bare is None:
        return Unit("", frozenset(), frozenset())
    inner = list(ast.walk(bare))
    names = {one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    attributes = {one.attr for one in inner if isinstance(one, ast.Attribute)}
    for one in inner:  # attributes of a module: ranking.rank_counts
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            names.add(f"{one.value.id}.{one.attr}")
    text = ast.unparse(ast.fix_missing_locations(bare))
    return Unit(text, frozenset(names), frozenset(attributes), isinstance(bare, ast.Assign))


@cache
def _is_module(name: str) -> bool:
    try:
        return name.startswith("dpcml.") and find_spec(name) is not None
    except ModuleNotFoundError:
        return False
