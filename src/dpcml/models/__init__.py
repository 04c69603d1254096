"""Models, found by name in `MODELS`."""

from dpcml.models import bpr, dpcml, ease, gfja, ials, item_knn, neural, popularity, rp3beta
from dpcml.models.base import MODELS, Recommender
from dpcml.models.create import create

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
