"""What a reader asks first: whether several vectors are better than one, and than strong simple methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import stdtrit

from dpcml.paper.document import Heading, Notes, ReportBlock, ReportTable, TableLine
from dpcml.paper.published import title_of
from dpcml.paper.study_types import StudyResults
from dpcml.paper.study_types.tables import cell, paired_gaps
from dpcml.paper.verdicts import PairedGap

METRIC = "NDCG@5"
OURS = ("DPCML2", "DPCML2, our defaults")
OTHERS = ("HarS", "CML (hard), as many numbers as DPCML2", "EASE", "iALS", "RP3beta")


def several_or_one(results: StudyResults) -> list[ReportBlock]:
    """Return what several vectors gain over one and over simple methods, set by set, and which rows are out of date."""
    lines = []
    for data in results.sets():
        current = [results.of(row) for row in results.rows(data)]
        done = pl.concat(current, how="diagonal_relaxed") if current else results.on(data)
        for ours in OURS:
            cells = []
            for other in OTHERS:
                gaps = paired_gaps(done, data, ours, other, [METRIC])
                cells.append(interval(gaps[0], results.spec.scale) if gaps else "-")
            if any(cell != "-" for cell in cells):
                lines.append(TableLine(f"{title_of(data)}: {ours}", cells))
    if not lines:
        return []
    about = (
        f"Differences in {METRIC}, percent, with 95% intervals over seeds (Student's t on differences paired by seed,"
        " not corrected for their number); bold where 0 lies outside. HarS is one vector with the same negatives; the"
        " wider CML has as many numbers per user as DPCML2."
    )
    header = [f"against {name}" for name in OTHERS]
    blocks: list[ReportBlock] = [Heading("Are several vectors better than one?", 1), about, ReportTable(header, lines)]
    return [*blocks, Notes(results.notes)] if results.notes else blocks


def coverage(studies: Sequence[StudyResults]) -> list[ReportBlock]:
    """Return one table over all studies: sets and seeds that were run, and how many cells are below the paper's."""
    lines = []
    for results in studies:
        seeds = [results.of(row).height for data in results.sets() for row in results.rows(data)]
        cells = [
            found
            for data in results.sets()
            for row in results.rows(data)
            for metric in results.spec.metrics
            if (found := cell(results.spec, row, results.of(row), metric)).theirs is not None
        ]
        below = sum((found.gap() or 0) < 0 for found in cells)
        shown = [
            ", ".join(map(title_of, results.sets())) or "none yet",
            (f"{min(seeds)} to {max(seeds)}" if min(seeds) < max(seeds) else f"{seeds[0]}") if seeds else "-",
            f"{below} of {len(cells)}" if cells else "-",
        ]
        lines.append(TableLine(results.spec.title, shown))
    header = ["data sets", "seeds per row", "cells below the paper's"]
    return [Heading("Tables and figures of the paper", 1), ReportTable(header, lines)]


def interval(gap: PairedGap, scale: float = 100.0) -> str:
    """Return a difference with its 95% interval, bold if 0 lies outside; without one for a single seed.

    Examples
    --------
    >>> from dpcml.paper.verdicts import paired_gap
    >>> interval(paired_gap("MAP", np.array([0.010, 0.012, 0.011])))
    '**+1.10 [+0.85, +1.35]**'
    >>> interval(paired_gap("MAP", np.array([0.01])))
    '+1.00, one seed'
    """
    mean = scale * gap.mean
    if np.isnan(gap.error):
        return f"{mean:+.2f}, one seed"
    half = scale * gap.error * float(stdtrit(gap.n - 1, 0.975))
    text = f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"
    return f"**{text}**" if abs(mean) > half else text
