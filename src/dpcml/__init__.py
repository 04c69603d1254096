"""dpcml: recommendation for people with more than one interest.

Public names are imported on first use, so that ``import dpcml`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcml.data.interactions import Interactions as Interactions
    from dpcml.evaluation.compare import compare as compare
    from dpcml.evaluation.evaluate import evaluate as evaluate
    from dpcml.evaluation.report import Report as Report
    from dpcml.models.ease import EASE as EASE
    from dpcml.models.item_knn import ItemKNN as ItemKNN
    from dpcml.models.popularity import Popularity as Popularity

_HOMES = {
    "EASE": "dpcml.models.ease",
    "Interactions": "dpcml.data.interactions",
    "ItemKNN": "dpcml.models.item_knn",
    "Popularity": "dpcml.models.popularity",
    "Report": "dpcml.evaluation.report",
    "compare": "dpcml.evaluation.compare",
    "evaluate": "dpcml.evaluation.evaluate",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dpcml")
    if name not in _HOMES:
        raise AttributeError(f"module 'dpcml' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
