"""Kinds of studies, found by name in `KINDS`: one module each."""

from dpcml.experiments.kinds import (
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
from dpcml.experiments.kinds.base import KINDS, Kind, Results

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
