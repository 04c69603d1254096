"""Count the files and functions of dpcml that four commands run, and the size of the package.

``python tools/journeys.py`` measures the installed package, or the one that ``PYTHONPATH`` names. Each command runs
once to fill the kernel cache and a second time under a profiler. Counted are functions and methods of the package that
are called from Python; compiled kernels are not, nor lambdas, comprehensions, and calls made while a module is being
imported. A hop is a call from one file into another, on the longest chain of calls. ``--tree`` draws each journey,
``--json FILE`` also writes the figures. ``results/architecture`` holds them for two versions; ``tools/docs_tables.py``
makes the tables of the page on the architecture from there.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

JOURNEYS = {
    "train": ["train", "--data", "likes.csv", "--out", "model"],
    "evaluate": ["evaluate", "model"],
    "recommend": ["recommend", "model", "--user", "u0", "--explain"],
    "reproduce": ["reproduce", "overall", "--quick", "--data", "planted", "--label", "DPCML2", "--out", "paper"],
}
# What the commands above did before the default was a blend that is trained again on everything. An older version
# without these options is measured without them.
ONE_MODEL = {
    "train one model": ["train", "--data", "likes.csv", "--out", "one", "--model", "dpcml", "--no-refit"],
    "evaluate one model": ["evaluate", "one"],
    "recommend from one model": ["recommend", "one", "--user", "u0", "--explain"],
}
FUNCTION = 0x1  # CO_OPTIMIZED: set for functions, not for bodies of modules and classes
SMALL = 25  # lines of code


class Profiler:
    """Records which functions of a package run, and from which of its files each file was entered first."""

    def __init__(self, package: Path) -> None:
        self._prefix = str(package) + os.sep
        self._stacks = threading.local()
        self.functions: dict[str, None] = {}  # "file:function", in order of the first call
        self.entered: dict[str, str | None] = {}  # file -> file of the caller at its first call
        self.longest: list[str] = []  # files along the longest chain of calls
        self.imported: dict[str, None] = {}  # files whose module body ran

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Handle an event of `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._prefix):
            return
        stack: list[tuple[CodeType, bool]] = self._stacks.__dict__.setdefault("frames", [])
        if event == "return":
            if stack and stack[-1][0] is code:
                stack.pop()
            return
        if code.co_name == "<module>":
            self.imported.setdefault(code.co_filename.removeprefix(self._prefix))
        importing = code.co_name == "<module>" or (bool(stack) and stack[-1][1])
        if not importing and code.co_flags & FUNCTION and not code.co_name.startswith("<"):
            self._count(code, stack)
        stack.append((code, importing))

    def _count(self, code: CodeType, stack: list[tuple[CodeType, bool]]) -> None:
        chain = [one.co_filename.removeprefix(self._prefix) for one, importing in stack if not importing]
        file = code.co_filename.removeprefix(self._prefix)
        self.functions.setdefault(f"{file}:{code.co_qualname}")
        self.entered.setdefault(file, chain[-1] if chain else None)
        files = [one for k, one in enumerate([*chain, file]) if k == 0 or one != [*chain, file][k - 1]]
        if len(files) > len(self.longest):
            self.longest = files


def profile(command: list[str], out: Path) -> None:
    """Run a command of dpcml in this process under the profiler and write what it found."""
    spec = importlib.util.find_spec("dpcml")
    assert spec is not None
    assert spec.origin is not None
    found = Profiler(Path(spec.origin).parent)
    sys.argv = ["dpcml", *command]
    threading.setprofile(found)
    sys.setprofile(found)
    try:
        from dpcml.cli import main

        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        figures = {
            "functions": list(found.functions),
            "entered": found.entered,
            "longest": found.longest,
            "imported": list(found.imported),
        }
        out.write_text(json.dumps(figures), encoding="utf-8")


def measure(folder: Path) -> dict[str, Any]:
    """Return the figures of every journey, each run in new processes in ``folder``."""
    figures: dict[str, Any] = {}
    write_likes(folder / "likes.csv")
    for name, command in {**JOURNEYS, **ONE_MODEL}.items():
        out = folder / f"{name}.json"
        _run([sys.executable, "-m", "dpcml", *command], folder)
        if "--out" in command:  # made again under the profiler
            shutil.rmtree(folder / command[command.index("--out") + 1])
        _run([sys.executable, str(Path(__file__).resolve()), "--profile", str(out), *command], folder)
        found = json.loads(out.read_text(encoding="utf-8"))
        figures[name] = {
            "command": " ".join(["dpcml", *command]),
            "files": len(found["entered"]),
            "functions": len(found["functions"]),
            "hops": len(found["longest"]) - 1,
            "imported": len(found["imported"]),
            "longest": found["longest"],
            "tree": tree(found["entered"]).splitlines(),
        }
    return figures


def write_likes(file: Path) -> None:
    """Write a small file of ratings: two groups of users, each of which likes most of its half of the items."""
    pairs = [(user, 20 * (user % 2) + item) for user in range(60) for item in range(20) if (user // 2 + item) % 3]
    rows = [f"u{user},i{item},{3 + (user + item) % 3}" for user, item in pairs]
    file.write_text("\n".join(["user_id,item_id,rating", *rows, ""]), encoding="utf-8")


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stderr[-2000:]}")


def sizes() -> dict[str, int]:
    """Return files, lines and small files of the package that Python imports."""
    import dpcml

    texts = [file.read_text(encoding="utf-8") for file in sorted(Path(dpcml.__file__).parent.rglob("*.py"))]
    names = [node.name for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    code = [lines_of_code(text) for text in texts]
    return {
        "files": len(texts),
        "lines": sum(len(text.splitlines()) for text in texts),
        "lines of code": sum(code),
        f"files with at most {SMALL} lines of code": sum(lines <= SMALL for lines in code),
        "class names that occur twice": len(names) - len(set(names)),
    }


def lines_of_code(text: str) -> int:
    r"""Return the number of lines that are neither blank nor comment, docstring or import.

    Examples
    --------
    >>> lines_of_code('"Says hello."\n\n# greet\nprint("hello")\n')
    1
    """
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            _remove(lines, node.body[0])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            _remove(lines, node)
    return len(lines)


def _remove(lines: set[int], node: ast.stmt) -> None:
    lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tree(entered: dict[str, str | None]) -> str:
    """Return files as an indented tree, each below the file that called it first.

    Examples
    --------
    >>> print(tree({"cli/train.py": None, "workflow.py": "cli/train.py"}))
    cli/train.py
      workflow.py
    """

    def below(parent: str | None, depth: int) -> list[str]:
        children = [file for file, caller in entered.items() if caller == parent]
        return [line for file in children for line in ["  " * depth + file, *below(file, depth + 1)]]

    return "\n".join(below(None, 0))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--tree", action="store_true", help="also draw the files of each journey")
    parser.add_argument("--profile", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile:
        profile(options.command, options.profile)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    rows = [
        [name, f"`{one['command']}`", one["files"], one["functions"], one["hops"], one["imported"]]
        for name, one in figures.items()
    ]
    print(markdown(["journey", "command", "files", "functions", "hops", "files imported"], rows))
    print()
    counted = sizes()
    print(markdown(counted, [counted.values()]))
    if options.tree:
        for name, one in figures.items():
            print("\n".join(["", name, *one["tree"]]))
    if options.json:
        options.json.write_text(json.dumps({"journeys": figures, "sizes": counted}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
