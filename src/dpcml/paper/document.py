"""What reports are made of: a few kinds of blocks that know how to be Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

FIGURES = "figures"  # folder of the pictures, beside the report


class Block(Protocol):
    """A part of a report."""

    def markdown(self) -> str:
        """Return it as Markdown."""

    def html(self, folder: Path) -> str:
        """Return it as HTML; pictures are taken from the report's folder."""


def inline(text: str) -> str:
    """Return one line of Markdown as HTML: code, bold and italic.

    Examples
    --------
    >>> inline("**a** < `b`")
    '<strong>a</strong> &lt; <code>b</code>'
    """
    text = html.escape(text, quote=False)
    for mark, tag in ((r"`([^`]+)`", "code"), (r"\*\*([^*]+)\*\*", "strong"), (r"(?<![*\w])\*([^*]+)\*", "em")):
        text = re.sub(mark, rf"<{tag}>\1</{tag}>", text)
    return text


@dataclass(frozen=True)
class Heading:
    """A heading: level 1 for a study, 2 for its parts."""

    text: str
    level: int = 2

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"{'#' * self.level} {self.text}"

    def html(self, folder: Path) -> str:
        """Return it as HTML; the page's own title is above a study's."""
        name = f' id="{anchor(self.text)}"' if self.level == 1 else ""  # parts of studies share their names
        return f"<h{self.level + 1}{name}>{inline(self.text)}</h{self.level + 1}>"


def anchor(text: str) -> str:
    """Return the name that a heading is linked by.

    Examples
    --------
    >>> anchor("Steam-200k, DPCML2")
    'steam-200k-dpcml2'
    """
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class Text:
    """Paragraphs."""

    text: str

    def markdown(self) -> str:
        """Return it as Markdown."""
        return self.text.strip()

    def html(self, folder: Path) -> str:
        """Return it as HTML."""
        return "\n".join(f"<p>{inline(part)}</p>" for part in re.split(r"\n\s*\n", self.text.strip()))


@dataclass(frozen=True)
class Note:
    """A sentence computed from figures."""

    text: str
    verdict: str = "plain"  # plain, warning; of what can hold or not: holds, partly, fails
    claim: bool = False  # about a claim of the paper's or a control of ours


@dataclass(frozen=True)
class Notes:
    """A list of notes."""

    notes: Sequence[Note]

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"- {note.text}" for note in self.notes)

    def html(self, folder: Path) -> str:
        """Return it as HTML."""
        lines = (f'<li class="{note.verdict}">{inline(note.text)}</li>' for note in self.notes)
        return f'<ul class="notes">{"".join(lines)}</ul>'


@dataclass(frozen=True)
class Details:
    """What only some readers want: folded up in HTML."""

    summary: str
    lines: Sequence[str]

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join([f"{self.summary}:", "", *(f"- {line}" for line in self.lines)])

    def html(self, folder: Path) -> str:
        """Return it as HTML."""
        lines = "".join(f"<li>{inline(line)}</li>" for line in self.lines)
        return f"<details><summary>{inline(self.summary)}</summary><ul>{lines}</ul></details>"


@dataclass(frozen=True)
class Picture:
    """A figure: an SVG (shown in HTML, where it takes the page's colours) and a PNG of the same name."""

    name: str
    caption: str

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"![{self.caption}]({FIGURES}/{self.name}.png)\n\n*{self.caption}*"

    def html(self, folder: Path) -> str:
        """Return it as HTML with the drawing itself in it."""
        drawing = (folder / FIGURES / f"{self.name}.svg").read_text(encoding="utf-8")
        drawing = drawing[drawing.index("<svg") :]
        label = html.escape(self.caption, quote=True)
        return (
            f'<figure role="img" aria-label="{label}">{drawing}<figcaption>{inline(self.caption)}</figcaption></figure>'
        )


def page(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Return a whole HTML page without anything from elsewhere, fit for light and dark screens."""
    from importlib import resources

    style = resources.files("dpcml.paper").joinpath("report.css").read_text(encoding="utf-8")
    studies = [block.text for block in blocks if isinstance(block, Heading) and block.level == 1]
    links = "".join(f'<li><a href="#{anchor(name)}">{inline(name)}</a></li>' for name in studies)
    body = "\n".join(block.html(folder) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{inline(title)}</h1>\n<nav><ul>{links}</ul></nav>\n{body}\n</main>\n</body>\n</html>\n"
    )


def markdown(blocks: Sequence[Block]) -> str:
    """Return blocks as a Markdown text.

    Examples
    --------
    >>> print(markdown([Heading("A", 1), Text("About."), Notes([Note("true")])]))
    # A
    <BLANKLINE>
    About.
    <BLANKLINE>
    - true
    <BLANKLINE>
    """
    return "\n\n".join(block.markdown() for block in blocks) + "\n"
