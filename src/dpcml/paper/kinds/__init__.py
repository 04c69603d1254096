"""Kinds of studies, found by name in `KINDS`: one module each."""

from dpcml.paper.kinds import (
    categories,
    datasets,
    generalisation,
    groups,
    histogram,
    scale,
    surface,
    sweep,
    table,
    timing,
)
from dpcml.paper.kinds.base import KINDS, Kind, Results

__all__ = [
    "KINDS",
    "Kind",
    "Results",
    "categories",
    "datasets",
    "generalisation",
    "groups",
    "histogram",
    "scale",
    "surface",
    "sweep",
    "table",
    "timing",
]
