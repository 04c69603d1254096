"""Kinds of studies, found by name in `KINDS`: one module each."""

from dpcml.experiments.kinds import table
from dpcml.experiments.kinds.base import KINDS, Kind, Results

__all__ = ["KINDS", "Kind", "Results", "table"]
