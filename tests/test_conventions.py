"""Conventions that a reader of the source can check: one name per class, public calls, short imports, new names."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = {
    str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8"))
    for folder in ("src/dpcml", "benchmarks", "examples")
    for file in sorted((ROOT / folder).rglob("*.py"))
}
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "examples").glob("*.py"),
]
THEIRS = {  # of numba, typer, optuna, named tuples
    ("src/dpcml/kernels/compilation.py", "_cache"),
    ("src/dpcml/kernels/compilation.py", "_compiler"),
    ("src/dpcml/kernels/compilation.py", "_unique_ids"),
    ("src/dpcml/cli/__init__.py", "_get_path"),
    ("src/dpcml/tuning/run.py", "_trial_id"),
    ("src/dpcml/serving/direct.py", "_asdict"),
}
OLD_NAMES = (
    r"Asked|InEpochs|take_apart|put_together|drop_thin|Shelf|Refused|DataSet|ledger|Crew|Factors|People\(|"
    r"dpcml bench|dpcml\.(experiments|exporting|installation|errors|arrays|registry|threads)\b"
)


def nodes(kind):
    return ((file, node) for file, tree in SOURCES.items() for node in ast.walk(tree) if isinstance(node, kind))


def test_no_two_classes_have_one_name():
    names = Counter(node.name for file, node in nodes(ast.ClassDef) if file.startswith("src"))
    assert not [name for name, count in names.items() if count > 1]


def test_no_file_uses_private_names_of_another():
    found = {(file, name) for file, tree in SOURCES.items() for name in foreign_private_names(tree)}
    assert found <= THEIRS


def foreign_private_names(tree: ast.Module) -> set[str]:
    """Return private attributes that a file uses and does not define."""
    walked = list(ast.walk(tree))
    own = {node.name for node in walked if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.attr for node in walked if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    used = {node.attr for node in walked if isinstance(node, ast.Attribute) and not is_own(node.value)}
    return {name for name in used - own if name.startswith("_") and not name.startswith("__")}


def is_own(value: ast.expr) -> bool:
    """Whether an attribute belongs to the class that the code is in."""
    return ast.unparse(value) in ("self", "cls", "super()")


def test_signatures_are_read_only_to_add_options_to_commands():
    users = {file for file, node in nodes(ast.Import) if any(alias.name == "inspect" for alias in node.names)}
    assert users == {"src/dpcml/cli/options.py"}, "Typer reads the signature of a command; nothing else does"


def test_pages_import_from_dpcml_or_one_level_below():
    deep = re.compile(
        r"from dpcml\.\w+\.[\w.]+ import|import dpcml\.\w+\.\w+|^::: dpcml\.\w+\.\w+\.\w+", flags=re.MULTILINE
    )
    assert not found_in_pages(deep)


def test_pages_use_no_old_names():
    assert not found_in_pages(re.compile(OLD_NAMES))


def found_in_pages(pattern: re.Pattern[str]) -> list[str]:
    """Return page and text of each match."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    return [f"{name}: {match[0]}" for name, text in texts.items() for match in pattern.finditer(text)]
