"""Models, found by name in `MODELS`."""

from dpcml.models import dpcml, ease, gfja, item_knn, neural, popularity
from dpcml.models.base import MODELS, Recommender
from dpcml.models.create import create

__all__ = ["MODELS", "Recommender", "create", "dpcml", "ease", "gfja", "item_knn", "neural", "popularity"]
