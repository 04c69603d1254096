"""Speed and memory: seconds per epoch of every method, and a planted stand-in for a data set that is missing."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from dpcml.data.charts import COLOURS, OTHER, TEXT, canvas
from dpcml.data.datasets import DatasetStore
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.models import MODELS, Recommender, create
from dpcml.models.presets import PRESETS
from dpcml.paper.document import Heading, Note, Notes, ReportBlock, ReportTable, TableLine, details
from dpcml.paper.published import title_of
from dpcml.paper.run_store import Job
from dpcml.paper.runs import DatasetCache, model_jobs
from dpcml.paper.spec import Spec
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType
from dpcml.paper.study_types.tables import table_blocks
from dpcml.utils.errors import DataError, MissingExtraError
from dpcml.utils.threads import thread_count

YARDSTICK = "dpcml2"  # the paper's own method: times are also shown as multiples of its epoch
EPOCHS = 3  # per fit; the first one warms up
EPOCH, FIT, EACH = "epoch of ", "fit of ", "each of "
# Whose code decides how long training takes.
MODULES = (
    __name__, "dpcml.training.engine", "dpcml.training.order", "dpcml.training.trainer", "dpcml.kernels.gradients",
    "dpcml.kernels.minibatch", "dpcml.kernels.mining", "dpcml.kernels.optimizer", "dpcml.kernels.sampling",
    "dpcml.kernels.simd",
)  # fmt: skip
OURS = ("dpcml1", "dpcml2")
LABEL = "stand-in"


def method_names() -> list[str]:
    """Return the names of all models and presets, each once.

    Examples
    --------
    >>> {"ease", "dpcml2"} <= set(method_names())
    True
    """
    return list(dict.fromkeys([*MODELS, *PRESETS]))


def time_methods(
    data: Interactions, *, methods: Sequence[str] | None = None, epochs: int = EPOCHS, repeats: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Return the training time of every method on the training part of a 60/20/20 split, without validation.

    Parameters
    ----------
    data
        All positives; they are split here.
    methods
        Names of models and presets; all by default.
    epochs
        Epochs per fit, at most. The first one is left out if there are others.
    repeats
        Rounds; each fits every method once, so that other load on the machine affects all. The best one counts.
    seed
        Seed of the split and of the models.

    Returns
    -------
    dict
        ``methods``: per method ``name``, ``class``, ``per`` (``epoch`` or ``fit``), ``seconds`` of the best round,
        ``spread`` over rounds, ``each`` epoch or fit of all rounds, and ``ratio`` to an epoch of DPCML2 (None without
        it); ``skipped``: why a method has no figures, by name.

    Examples
    --------
    >>> import numpy as np
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((40, 30)) < 0.3)
    >>> found = time_methods(data, methods=["popularity"], repeats=1)
    >>> found["methods"][0]["per"], found["skipped"]
    ('fit', {})
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    train = data.split((0.6, 0.2, 0.2), seed)[0]
    wanted = list(dict.fromkeys(method_names() if methods is None else methods))
    models = {name: _shortened(create(name), epochs, seed) for name in wanted}
    seconds: dict[str, list[list[float]]] = {name: [] for name in wanted}
    skipped: dict[str, str] = {}
    for _ in range(repeats):
        for name in [name for name in wanted if name not in skipped]:
            try:
                seconds[name].append(_seconds(models[name], train))
            except (MissingExtraError, DataError) as error:
                skipped[name] = str(error)
    timed = [name for name in wanted if name not in skipped]
    yardstick = min(map(fmean, seconds[YARDSTICK])) if YARDSTICK in timed else None
    return {
        "benchmark": "methods",
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "threads": thread_count(),
        "epochs": epochs,
        "repeats": repeats,
        "methods": [_figures(name, models[name], seconds[name], yardstick) for name in timed],
        "skipped": skipped,
        "load_before": load,
    }


def _shortened(model: Recommender, epochs: int, seed: int) -> Recommender:
    """Return the model with few epochs, if it is trained in epochs."""
    known = model.get_params()
    changes = {"epochs": min(known["epochs"], epochs)} if "epochs" in known else {}
    return model.set_params(**changes, **({"random_state": seed} if "random_state" in known else {}))


def _seconds(model: Recommender, train: Interactions) -> list[float]:
    """Fit a model; return the seconds of its epochs after the first, or those of the whole fit."""
    started = time.perf_counter()
    model.fit(train)
    whole = time.perf_counter() - started
    history = getattr(model, "history_", None)
    if history is None:
        return [whole]
    return [epoch.seconds for epoch in history.epochs[1:] or history.epochs]


def _figures(name: str, model: Recommender, each: list[list[float]], yardstick: float | None) -> dict[str, Any]:
    seconds = [fmean(one) for one in each]
    best = min(seconds)
    return {
        "name": name,
        "class": type(model).__name__,
        "per": "epoch" if hasattr(model, "history_") else "fit",
        "seconds": best,
        "ratio": None if yardstick is None else best / yardstick,
        "spread": {"best": best, "median": median(seconds), "worst": max(seconds)},
        "each": [value for one in each for value in one],
    }


def fit_memory(model: str, parameters: Mapping[str, Any], train: Interactions) -> dict[str, int]:
    """Fit a model in a new process and return its peak resident memory.

    Parameters
    ----------
    model, parameters
        The name of a model with vectors, and its parameters.
    train
        Training positives.

    Returns
    -------
    dict
        ``peak_bytes``; ``needed_bytes``: the vectors, two moments of the optimizer and the CSR of the positives;
        ``parameters``: the number of learned values.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would start at the memory of this process
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        peak, learned = pool.submit(_fit_and_look, model, dict(parameters), train).result()
    needed = 3 * 4 * learned + train.indptr.nbytes + train.indices.nbytes
    return {"peak_bytes": peak, "needed_bytes": needed, "parameters": learned}


def _fit_and_look(name: str, parameters: dict[str, Any], train: Interactions) -> tuple[int, int]:
    model: Any = create(name, **parameters).fit(train)
    return peak_bytes(), model.user_vectors_.size + model.item_vectors_.size


def peak_bytes() -> int:
    """Return the highest resident memory of this process.

    Linux's own count comes first: psutil has no peak there, and ``getrusage`` starts from the size of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timing_jobs(spec: Spec, datasets: DatasetCache) -> Iterator[Job]:
    """Yield one job per data set: all methods take turns, so that they can be compared."""
    for data in spec.sets:
        yield Job(
            data,
            "seconds",
            0,
            work=lambda data=data: timing_figures(datasets(data), **spec.options),  # type: ignore[misc]
            parameters=spec.options,
            modules=MODULES,
            hashes=lambda data=data: datasets.hashes(data),  # type: ignore[misc]
        )


def timing_figures(data: Interactions, methods: list[str], epochs: int = 3, repeats: int = 3) -> dict[str, Any]:
    """Return seconds per epoch, or per fit, of each method that could be run, and who could not."""
    found = time_methods(data, methods=methods, epochs=epochs, repeats=repeats)
    seconds = {f"{FIT if one['per'] == 'fit' else EPOCH}{one['name']}": one["seconds"] for one in found["methods"]}
    each = {f"{EACH}{one['name']}": json.dumps([round(value, 6) for value in one["each"]]) for one in found["methods"]}
    skipped = "; ".join(f"{name}: {reason}" for name, reason in found["skipped"].items())
    return {"threads": found["threads"], "load_before": found["load_before"], "skipped": skipped, **seconds, **each}


def timing_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set a figure, a table, and what an epoch of DPCML costs beside one vector."""
    found: list[ReportBlock] = []
    hurry = " --quick" if results.spec.quick else ""
    for line in results.lines():
        data, seconds, fits = line["data"], _seconds_of(line, EPOCH), _seconds_of(line, FIT)
        each = {name: json.loads(line.get(EACH + name) or f"[{value}]") for name, value in seconds.items()}
        caption = (
            f"Seconds per training epoch on {title_of(data)}, on a logarithmic scale, {line['threads']} thread(s):"
            f" median, quartiles and range of {len(next(iter(each.values()), []))} epochs. Kinds of work are not one"
            " comparison: each has a panel."
        )
        yard = seconds.get(YARDSTICK, np.nan)
        rows = [TableLine(name, [f"{value:.3f}", f"{value / yard:.1f}", "epoch"]) for name, value in seconds.items()]
        rows += [TableLine(name, [f"{value:.3f}", "", "fit, no epochs"]) for name, value in fits.items()]
        load = f"load before {line['load_before']:.1f}" if line["load_before"] is not None else "load not known"
        said = [
            f"Mean of the epochs after the first, best of {results.spec.options.get('repeats', 3)} round(s) in which"
            f" all methods take turns; dpcml"
            f" {line['version']}, {line['threads']} thread(s), {load}",
            f"`dpcml reproduce {results.spec.name}{hurry} --data {data}` measures again",
        ]
        said += [f"Left out: {line['skipped']}"] if line["skipped"] else []
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda each=each: _draw_timing(each)),  # type: ignore[misc]
            Notes(_timing_notes(seconds)),
            ReportTable(["seconds", f"epochs of {YARDSTICK}", "per"], rows),
            details("How this was measured", said),
        ]
    return found


def _seconds_of(line: dict[str, Any], prefix: str) -> dict[str, float]:
    """Return seconds by method, fastest first."""
    found = {name.removeprefix(prefix): value for name, value in line.items() if name.startswith(prefix) and value}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _timing_notes(seconds: dict[str, float]) -> list[Note]:
    notes = []
    for several, one in (("dpcml1", "unis"), ("dpcml2", "hars")):
        if several in seconds and one in seconds:
            ratio = seconds[several] / seconds[one]
            notes.append(Note(f"An epoch of {several} takes {ratio:.1f} times one of {one}, its twin with one vector."))
    return notes


def kind_of_work(name: str) -> str:
    """Return who computes an epoch of a method: compiled kernels, PyTorch, or the package implicit.

    Examples
    --------
    >>> kind_of_work("dpcml2"), kind_of_work("gmf"), kind_of_work("bpr")
    ('compiled kernels', 'PyTorch', 'implicit')
    """
    module = (PRESETS[name][0] if name in PRESETS else MODELS[name]).__module__
    return "PyTorch" if ".neural." in module else "implicit" if module.endswith("implicit_mf") else "compiled kernels"


def _draw_timing(each: dict[str, list[float]]) -> Any:
    """Draw the seconds of all epochs as box plots, a panel for each kind of work."""
    kinds: dict[str, list[str]] = {}
    for name in each:
        kinds.setdefault(kind_of_work(name), []).append(name)
    figure, axes = canvas(10, 1.6 * len(kinds) + 0.42 * len(each), len(kinds), 1)
    for (kind, names), (one,) in zip(kinds.items(), axes, strict=True):
        boxes = one.boxplot(
            [each[name] for name in names],
            tick_labels=names,
            orientation="horizontal",
            whis=(0, 100),
            patch_artist=True,
        )
        for name, box in zip(names, boxes["boxes"], strict=True):
            box.set_facecolor(COLOURS[0] if name in OURS else OTHER)
        one.set_xscale("log")
        one.xaxis.set_major_formatter("{x:g}")
        one.grid(axis="x", color=OTHER, alpha=0.35)
        one.grid(visible=False, axis="y")
        one.invert_yaxis()
        one.set_title(kind, fontsize=TEXT)
    axes[-1, 0].set_xlabel("seconds per epoch", fontsize=TEXT)
    return figure


STUDY_TYPES.add("timing", StudyType(timing_blocks, timing_jobs))


def scale_jobs(spec: Spec, datasets: DatasetCache) -> Iterable[Job]:
    """Yield the runs of the table for the sets on this machine, and one measurement on a stand-in for each other."""
    here = {data for data in spec.sets if DatasetStore().locate(data)}
    yield from (job for job in model_jobs(spec, datasets) if job.data in here)
    for data in (data for data in spec.sets if data not in here):
        shape = spec.options["stand_in"]
        work = lambda shape=shape: stand_in_figures(**shape)  # noqa: E731
        yield Job(data, LABEL, 0, work=work, parameters=shape, modules=MODULES)


def stand_in_figures(
    users: int, items: int, positives: int, epochs: int = 2, setting: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Train DPCML2 for some epochs on a planted world of a shape; return seconds and memory, the best epoch counts."""
    started = time.perf_counter()
    world = planted(users, items, positives=positives / users).data
    made = time.perf_counter() - started
    train = world.split((0.6, 0.2, 0.2), 0).train
    parameters = {**(setting or {}), "epochs": epochs, "random_state": 0}
    model: Any = create("dpcml2", **parameters).fit(train)
    seconds = [epoch.seconds for epoch in model.history_.epochs]
    del model
    memory = fit_memory("dpcml2", {**parameters, "epochs": 1}, train)
    return {
        "users": users,
        "items": items,
        "positives": world.n_positives,
        "training positives": train.n_positives,
        "threads": thread_count(),
        "seconds to generate": made,
        "seconds per epoch": min(seconds),
        "positives per second": train.n_positives / min(seconds),
        "peak bytes": memory["peak_bytes"],
        "needed bytes": memory["needed_bytes"],
        "bytes per parameter": memory["peak_bytes"] / memory["parameters"],
    }


def scale_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return the table if there are runs on the set itself; otherwise speed and memory, labelled as a stand-in."""
    found = table_blocks(results) if any(results.rows(data) for data in results.sets()) else []
    for line in results.lines():
        if line["label"] == LABEL and not results.rows(line["data"]):
            found += _stand_in_blocks(results.spec, line)
    return found


def _stand_in_blocks(spec: Spec, line: dict[str, Any]) -> list[ReportBlock]:
    title = title_of(line["data"])
    note = Note(
        f"The ratings of {title} are not on this machine. These are **not** results on {title}: they are speed and"
        f" memory of DPCML2 on a planted world of {line['users']:,} users, {line['items']:,} items and"
        f" {line['positives']:,} positives. No accuracy is reported.",
        "warning",
    )
    shown = [
        TableLine("seconds per epoch (the better of those run)", [f"{line['seconds per epoch']:.2f}"]),
        TableLine("training positives per second", [f"{line['positives per second']:,.0f}"]),
        TableLine("training positives", [f"{line['training positives']:,}"]),
        TableLine("peak memory of training", [f"{line['peak bytes'] / 2**20:,.0f} MiB"]),
        TableLine("vectors, moments and positives, the least it can be", [f"{line['needed bytes'] / 2**20:,.0f} MiB"]),
        TableLine("bytes per learned number, at the peak", [f"{line['bytes per parameter']:.1f}"]),
        TableLine("seconds to generate the world", [f"{line['seconds to generate']:.1f}"]),
    ]
    said = [
        f"dpcml {line['version']}, {line['threads']} thread(s), seed 0; `dpcml reproduce {spec.name}` measures again,"
        f" or fills the table once the ratings are in `$DPCML_DATA/{line['data']}`"
    ]
    return [
        Heading(f"A planted world in place of {title}"),
        Notes([note]),
        ReportTable(["DPCML2"], shown),
        details("How this was measured", said),
    ]


STUDY_TYPES.add("scale", StudyType(scale_blocks, scale_jobs))
