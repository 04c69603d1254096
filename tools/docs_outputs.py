"""Run the blocks of a page from top to bottom, and write what they print back into the page.

Lines that begin with ``$ `` in a ``console`` block are commands; the lines below them are their output. What a
``python`` block prints stands in a ``text`` block right after it. Run ``python tools/docs_outputs.py`` after a change
of what commands print. A test runs the same pages and checks that the output still has the same form.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/tutorial/index.md", "docs/explanation/theory.md")
FENCE = re.compile(r"```(console|python|text)\n(.*?)```\n", flags=re.DOTALL)
# Commands that are shown but not run: they set up, wait for requests, need a data set, or train once more.
SKIPPED = (
    "pip ",
    "make ",
    ". ",
    "dpcml serve",
    "dpcml train --all",
    "dpcml train --data steam",
    "dpcml bound runs/steam",
)


def play(text: str) -> str:
    """Return the page with fresh output; its commands run in the current folder."""
    names: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None  # by the python block just above

    def block(found: re.Match[str]) -> str:
        nonlocal printed
        kind, body = found.groups()
        if kind == "python":
            printed = run_python(body, names)
        elif kind == "console":
            body, printed = run_console(body), None
        elif printed is not None:
            body, printed = printed, None
        return f"```{kind}\n{body}```\n"

    return FENCE.sub(block, text)


def run_python(code: str, names: dict[str, Any]) -> str:
    """Return what a block prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "page", "exec"), names)
    return trimmed(out.getvalue())


def run_console(body: str) -> str:
    """Return the commands of a block, each with its output; those in `SKIPPED` stay as they are."""
    lines: list[str] = []
    keep = False
    for line in body.splitlines():
        if line.startswith("$ "):
            keep = line.removeprefix("$ ").startswith(SKIPPED)
            lines.append(line)
            if not keep:
                lines.append(run_command(line.removeprefix("$ ")).removesuffix("\n"))
        elif keep:
            lines.append(line)
    return "".join(f"{line}\n" for line in lines if line)


def run_command(command: str) -> str:
    """Return what a command of ``dpcml`` prints; raise where it fails."""
    program, *arguments = shlex.split(command, comments=True)
    if program != "dpcml":
        raise ValueError(f"{command!r}: pages run dpcml only; add other programs to SKIPPED")
    run = [sys.executable, "-m", "dpcml", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "88"})
    if done.returncode:
        raise RuntimeError(f"{command!r} failed: {done.stderr}")
    return trimmed(done.stdout)


def trimmed(text: str) -> str:
    """Return text without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main() -> None:
    """Refresh the output in all pages."""
    for page in PAGES:
        path = ROOT / page
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = play(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
