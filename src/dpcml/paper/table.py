"""Tables of a report: our figures with their spread, the paper's beside them, and the difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpcml.paper.document import inline


@dataclass(frozen=True)
class Cell:
    """One figure of ours, and the paper's where it has one."""

    mean: float
    spread: float | None = None  # standard deviation over seeds
    theirs: float | None = None
    digits: int = 2
    best: bool = False  # of its column

    def ours(self) -> str:
        """Return our figure as text.

        Examples
        --------
        >>> Cell(31.254, 0.5).ours()
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
        >>> Cell(1.0, theirs=0.75).difference(), Cell(1.0).difference()
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
class Line:
    """One line of a table."""

    label: str
    cells: Sequence[Cell | str]
    paper: str | None = None  # what the paper calls it

    def compared(self) -> bool:
        """Say whether a cell has a figure of the paper beside it."""
        return any(isinstance(cell, Cell) and cell.theirs is not None for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table; the first column has labels."""

    header: Sequence[str]  # of the columns after the labels
    lines: Sequence[Line]

    def markdown(self) -> str:
        """Return it as Markdown: three lines for a row with figures of the paper."""
        out = [_row("", self.header), "|---|" + "---:|" * len(self.header)]
        for line in self.lines:
            out.append(_row(line.label, [_ours(cell) for cell in line.cells]))
            if line.compared():
                named = "the paper's" + (f" {line.paper}" if line.paper and line.paper != line.label else "")
                for label, part in ((named, Cell.paper), ("difference", Cell.difference)):
                    cells = [part(cell) if isinstance(cell, Cell) else "" for cell in line.cells]
                    out.append(_row(f"*{label}*", cells))
        return "\n".join(out)

    def html(self, folder: Path) -> str:
        """Return it as HTML: the paper's figure and the difference below ours."""
        head = "".join(f"<th>{inline(name)}</th>" for name in ("", *self.header))
        body = "".join(
            f"<tr><th>{inline(line.label)}</th>{''.join(map(_html, line.cells))}</tr>\n" for line in self.lines
        )
        return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def _row(label: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([label, *cells])} |"


def _ours(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return cell
    return f"**{cell.ours()}**" if cell.best else cell.ours()


def _html(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return f"<td>{inline(cell)}</td>"
    mean, plus, spread = cell.ours().partition(" ± ")
    shown = (f"<b>{mean}</b>" if cell.best else mean) + (f'<span class="spread"> ± {spread}</span>' if plus else "")
    gap = cell.gap()
    if gap is None:
        return f"<td>{shown}</td>"
    sign = "up" if gap >= 0 else "down"
    return f'<td>{shown}<small>paper {cell.paper()} <span class="{sign}">{cell.difference()}</span></small></td>'
