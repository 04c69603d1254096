"""Plain text tables for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out cells in columns: the first to the left, the others to the right.

    Examples
    --------
    >>> print(text_table(["model", "P@3"], [["ease", "0.34"], ["popularity", "0.13"]]))
    model        P@3
    ----------------
    ease        0.34
    popularity  0.13
    """
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others]).rstrip()

    return "\n".join([line(header), "-" * (sum(widths) + 2 * (len(widths) - 1)), *map(line, rows)])
