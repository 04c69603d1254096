"""Models, found by name in `MODELS`."""

from dpcml.models import bpr, dpcml, ease, gfja, ials, item_knn, neural, popularity, rp3beta
from dpcml.models.base import Recommender
from dpcml.models.create import create
from dpcml.models.parameters import MODELS

__all__ = [
    "MODELS",
    "Recommender",
    "bpr",
    "create",
    "dpcml",
    "ease",
    "gfja",
    "ials",
    "item_knn",
    "neural",
    "popularity",
    "rp3beta",
]
