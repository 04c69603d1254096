"""Models, found by name in `MODELS`."""

from dpcml.models import ease, item_knn, popularity
from dpcml.models.base import MODELS, Recommender

__all__ = ["MODELS", "Recommender", "ease", "item_knn", "popularity"]
