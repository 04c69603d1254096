from .datasets import DATASETS, DatasetStore, load_dataset
from .interactions import Interactions
from .items import Attributes, ItemTable
from .split import Split, by_ratio, by_time, leave_last
from .synthetic import planted

__all__ = [
    "DATASETS",
    "Attributes",
    "DatasetStore",
    "Interactions",
    "ItemTable",
    "Split",
    "by_ratio",
    "by_time",
    "leave_last",
    "load_dataset",
    "planted",
]
