"""Estimate what a full run of the studies costs, by study and data set, from the seconds of earlier runs.

Run it in the root of the repository; it writes results/reproduce-cost.json, of which ``tools/docs_tables.py`` makes a
table. A run that nothing was timed of is estimated from the same model on another set, by size.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from dpcml.paper.run_store import FAILURES, KEY, all_parameters
from dpcml.paper.searches import searches
from dpcml.paper.spec import FOLDER, read_spec, specs
from dpcml.results_store import ResultsStore, parameters_text
from dpcml.utils.errors import DpcmlError

OUT = Path("results/reproduce-cost.json")
# Positives relative to Steam-200k, for rows of which no run on the set was timed.
SIZES = {"steam-200k": 1.0, "ml-1m": 5.0, "citeulike-t": 1.6}
# Models whose scores take longer than their training: CiteULike-T has ten times the pairs of Steam-200k to score.
SCORED = ("mlp", "neumf", "lrml", "adacml", "hlr")
SCORED_SIZES = {"steam-200k": 1.0, "ml-1m": 2.0, "citeulike-t": 4.5}
SHARE = 0.6  # of the seconds of full runs that trials of a search with successive halving take
# Of the seconds of runs without a fingerprint, which slower code of these models made, or longer runs.
FASTER = {"hlr": 0.3, "adacml": 0.25, "lrml": 0.7}
UNTIMED = 60.0  # seconds of a run of which nothing like it was timed


def seconds_by_label(folder: str | Path = FOLDER) -> dict[tuple[str, str], float]:
    """Return the median seconds of training of each data set and row in the results files of a folder."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for file in sorted(Path(folder).glob("*.csv")):
        if file.name.endswith(FAILURES):
            continue
        for row in ResultsStore(file, KEY).rows:
            if row.get("seconds") is not None and row.get("model"):
                share = 1.0 if row.get("fingerprint") else FASTER.get(row["model"], 1.0)
                found[row["data"], row["model"]].append(share * float(row["seconds"]))
    return {key: median(values) for key, values in found.items()}


def estimates(folder: str | Path = FOLDER) -> Iterator[dict[str, Any]]:
    """Yield per study and data set the runs, the hours of one process on all threads, and how many runs were timed.

    A run that several studies share is counted in the first; searches come first.
    """
    timed = seconds_by_label(folder)

    def seconds(data: str, model: str) -> tuple[float, bool]:
        if (data, model) in timed:
            return timed[data, model], True
        sizes = SCORED_SIZES if model in SCORED else SIZES
        known = [
            value * sizes.get(data, 1) / sizes.get(other, 1) for (other, name), value in timed.items() if name == model
        ]
        return (median(known), False) if known else (UNTIMED, False)

    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def count(study: str, data: str, model: str, runs: int, share: float = 1.0) -> None:
        taken, known = seconds(data, model)
        total = totals[study, data]
        total[0] += runs
        total[1] += share * runs * taken
        total[2] += runs * known

    for one in searches():
        count("search", one.data, one.model, one.budget, SHARE)
    seen: set[tuple[str, str, str, int, tuple[str, ...]]] = set()
    for spec in sorted(map(read_spec, specs()), key=lambda spec: (spec.place, spec.name)):
        for row in spec.rows if spec.folder == FOLDER and spec.study_type != "scale" else ():
            try:
                settings = all_parameters(row.model, parameters_text(row.parameters))
            except DpcmlError:
                settings = parameters_text(row.parameters)
            for seed in range(spec.seeds_of(row)):
                key = row.data, row.model, settings, seed, spec.measures
                if key not in seen:
                    seen.add(key)
                    count(spec.name, row.data, row.model, 1)
    for (study, data), (runs, taken, known) in totals.items():
        yield {"study": study, "data": data, "runs": int(runs), "hours": taken / 3600, "timed": int(known)}


def main() -> None:
    """Write the estimates."""
    found = [{**one, "hours": round(one["hours"], 2)} for one in estimates()]
    OUT.write_text(json.dumps({"estimates": found}, indent=2) + "\n", encoding="utf-8")
    print(f"{OUT}: {sum(one['hours'] for one in found):.1f} hours")


if __name__ == "__main__":
    main()
