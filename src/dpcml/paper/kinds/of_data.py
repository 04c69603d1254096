"""Studies of data sets alone: one job per set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.paper.document import Details
from dpcml.paper.kinds.base import Results
from dpcml.paper.ledger import Job
from dpcml.paper.runner import Library
from dpcml.paper.spec import Spec


def data_jobs(
    figures: Callable[[Interactions], dict[str, Any]], label: str
) -> Callable[[Spec, Library], Iterator[Job]]:
    """Return a function that makes one job per data set of a study, which looks at the whole set."""

    def make(spec: Spec, library: Library) -> Iterator[Job]:
        for data in spec.sets():
            yield Job(data, label, 0, work=lambda data=data: figures(library(data)))  # type: ignore[misc]

    return make


def source(results: Results) -> Details:
    """Return where the figures come from: version and command; no split, seed or protocol is involved."""
    versions = ", ".join(sorted(set(results.done["version"])))
    return Details(
        "Version of the figures",
        [
            f"dpcml {versions}; all positives of each set, prepared by the paper's rules: no split, seed or protocol",
            f"`dpcml reproduce {results.spec.name}` gives these figures again",
        ],
    )
