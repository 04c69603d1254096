"""What the verbs share: read data, split it, fit a model, save it, and evaluate or update a saved one."""

from dpcml.workflow.saved import add_items_saved, evaluate_saved, evaluated_folder, split_again, update_saved
from dpcml.workflow.source import SHARDS, DataSource, read_catalogue
from dpcml.workflow.train import checkpoint_folder, train_and_save

__all__ = [
    "SHARDS",
    "DataSource",
    "add_items_saved",
    "checkpoint_folder",
    "evaluate_saved",
    "evaluated_folder",
    "read_catalogue",
    "split_again",
    "train_and_save",
    "update_saved",
]
