"""Named data sets: where they live, how they are fetched and checked, and the rules that give the paper's counts."""

from dpcml.data.catalog.dataset import DataSet
from dpcml.data.catalog.find import fetch, load, load_or_read, locate, places
from dpcml.data.catalog.sets import CATALOG

__all__ = ["CATALOG", "DataSet", "fetch", "load", "load_or_read", "locate", "places"]
