"""dpcml: recommendation for people with more than one interest.

Public names are imported on first use, so that ``import dpcml`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcml.data.interactions import Interactions as Interactions
    from dpcml.data.synthetic import planted as planted
    from dpcml.evaluation.compare import compare as compare
    from dpcml.evaluation.evaluate import evaluate as evaluate
    from dpcml.evaluation.report import Report as Report
    from dpcml.models.bpr import BPR as BPR
    from dpcml.models.create import create as create
    from dpcml.models.dpcml import CML as CML
    from dpcml.models.dpcml import DPCML as DPCML
    from dpcml.models.ease import EASE as EASE
    from dpcml.models.gfja import GFJA as GFJA
    from dpcml.models.ials import IALS as IALS
    from dpcml.models.item_knn import ItemKNN as ItemKNN
    from dpcml.models.popularity import Popularity as Popularity
    from dpcml.models.rp3beta import RP3Beta as RP3Beta
    from dpcml.retrieval.interests import Interest as Interest
    from dpcml.retrieval.reasons import Reason as Reason
    from dpcml.storage import load as load
    from dpcml.storage import save as save
    from dpcml.tuning.search import tune as tune

_HOMES = {
    "BPR": "dpcml.models.bpr",
    "CML": "dpcml.models.dpcml",
    "DPCML": "dpcml.models.dpcml",
    "EASE": "dpcml.models.ease",
    "GFJA": "dpcml.models.gfja",
    "IALS": "dpcml.models.ials",
    "Interactions": "dpcml.data.interactions",
    "Interest": "dpcml.retrieval.interests",
    "ItemKNN": "dpcml.models.item_knn",
    "Popularity": "dpcml.models.popularity",
    "RP3Beta": "dpcml.models.rp3beta",
    "Reason": "dpcml.retrieval.reasons",
    "Report": "dpcml.evaluation.report",
    "compare": "dpcml.evaluation.compare",
    "create": "dpcml.models.create",
    "evaluate": "dpcml.evaluation.evaluate",
    "load": "dpcml.storage",
    "planted": "dpcml.data.synthetic",
    "save": "dpcml.storage",
    "tune": "dpcml.tuning.search",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from dpcml.utils.packages import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'dpcml' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
