"""The blocks of a report: Markdown text, headings, notes and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

FIGURES = "figures"  # folder of the pictures, beside the report


@dataclass(frozen=True)
class Heading:
    """A heading: level 1 for a study, 2 for its parts."""

    text: str
    level: int = 2

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"{'#' * self.level} {self.text}"


@dataclass(frozen=True)
class Note:
    """A sentence computed from figures."""

    text: str
    verdict: str = "plain"  # on a claim: holds, level, fails; plain or warning otherwise
    claim: bool = False  # about a claim of the paper's or a control of ours


@dataclass(frozen=True)
class Notes:
    """A list of notes."""

    notes: Sequence[Note]

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"- {note.text}" for note in self.notes)


@dataclass(frozen=True)
class TableCell:
    """One figure of ours, and the paper's if it has one."""

    mean: float
    spread: float | None = None  # standard deviation over seeds
    theirs: float | None = None
    digits: int = 2
    best: bool = False  # of its column

    def ours(self) -> str:
        """Return our figure as text.

        Examples
        --------
        >>> TableCell(31.254, 0.5).ours()
        '31.25 ± 0.50'
        """
        if math.isnan(self.mean):
            return "-"
        spread = "" if self.spread is None else f" ± {self.spread:.{self.digits}f}"
        return f"{self.mean:,.{self.digits}f}{spread}"

    def paper(self) -> str:
        """Return the paper's figure as text."""
        return "" if self.theirs is None else f"{self.theirs:,.{self.digits}f}"

    def difference(self) -> str:
        """Return ours minus theirs, as the rounded figures give it.

        Examples
        --------
        >>> TableCell(1.0, theirs=0.75).difference(), TableCell(1.0).difference()
        ('+0.25', '')
        """
        gap = self.gap()
        return "" if gap is None else f"{gap:+,.{self.digits}f}"

    def gap(self) -> float | None:
        """Return ours minus theirs, both rounded as shown; None without theirs."""
        if self.theirs is None or math.isnan(self.mean):
            return None
        return round(self.mean, self.digits) - round(self.theirs, self.digits) + 0.0


@dataclass(frozen=True)
class TableLine:
    """One line of a table."""

    label: str
    cells: Sequence[TableCell | str]
    paper: str | None = None  # its name in the paper

    def compared(self) -> bool:
        """Return whether the paper has figures for this line."""
        return any(isinstance(cell, TableCell) and cell.theirs is not None for cell in self.cells)


@dataclass(frozen=True)
class ReportTable:
    """A table; the first column has labels."""

    header: Sequence[str]  # of the columns after the labels
    lines: Sequence[TableLine]

    def markdown(self) -> str:
        """Return it as Markdown: three lines for a row with figures of the paper."""
        out = [_row("", self.header), "|---|" + "---:|" * len(self.header)]
        for line in self.lines:
            out.append(_row(line.label, [_ours(cell) for cell in line.cells]))
            if line.compared():
                named = "the paper's" + (f" {line.paper}" if line.paper and line.paper != line.label else "")
                for label, part in ((named, TableCell.paper), ("difference", TableCell.difference)):
                    cells = [part(cell) if isinstance(cell, TableCell) else "" for cell in line.cells]
                    out.append(_row(f"*{label}*", cells))
        return "\n".join(out)


def _row(label: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([label, *cells])} |"


def _ours(cell: TableCell | str) -> str:
    if isinstance(cell, str):
        return cell
    return f"**{cell.ours()}**" if cell.best else cell.ours()


ReportBlock: TypeAlias = str | Heading | Notes | ReportTable  # a text is Markdown already


def details(summary: str, lines: Sequence[str]) -> str:
    """Return lines for readers who want to know more, such as settings and versions, as Markdown."""
    return "\n".join([f"{summary}:", "", *(f"- {line}" for line in lines)])


def markdown(blocks: Sequence[ReportBlock]) -> str:
    """Return blocks as a Markdown text.

    Examples
    --------
    >>> print(markdown([Heading("A", 1), "About.", Notes([Note("true")])]))
    # A
    <BLANKLINE>
    About.
    <BLANKLINE>
    - true
    <BLANKLINE>
    """
    return "\n\n".join(block if isinstance(block, str) else block.markdown() for block in blocks) + "\n"
