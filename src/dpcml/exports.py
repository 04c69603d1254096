"""A model's lists and vectors as files for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpcml.arrays import Array, FloatArray
from dpcml.errors import ParameterError, did_you_mean
from dpcml.files import atomic, atomic_folder
from dpcml.models.base import Recommender
from dpcml.registry import Registry

PEOPLE_AT_ONCE = 2048

Progress = Callable[[int, int], object]  # people done, people in all
Parts = Iterator[pl.DataFrame]

LISTS: Registry[Callable[[Parts, Path], None]] = Registry("format of lists")
EXPORTS: Registry[Callable[[Recommender, Path], None]] = Registry("format of vectors")


def write_lists(
    model: Recommender,
    path: str | Path,
    users: Sequence[Any] | Array | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> int:
    """Write recommendations of many users to a file, block by block; returns how many lines.

    Parameters
    ----------
    model
        A fitted model.
    path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``; columns are user, rank, item and score.
    users
        External ids; all of the training data by default.
    progress
        Called with how many people are done, and how many there are.
    **options
        As `Recommender.recommend` takes them: ``n``, ``exclude_seen``, ``where``, ``mix``.

    Examples
    --------
    >>> import tempfile
    >>> from dpcml import Popularity
    >>> model = Popularity().fit(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = write_lists(model, Path(folder) / "lists.csv", n=1)
    ...     lines, (Path(folder) / "lists.csv").read_text().split()
    (2, ['user,rank,item,score', '0,1,2,1.0', '1,1,0,1.0'])
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    if kind not in LISTS:
        raise ParameterError(f"{path.name}: a list file ends in {', '.join(f'.{name}' for name in LISTS)}")
    people = model.train_.user_ids if users is None else np.asarray(users, dtype=object)
    model.train_.user_rows(people)  # an unknown id is said before anything is computed
    written = 0

    def parts() -> Parts:
        nonlocal written
        for first in range(0, len(people), PEOPLE_AT_ONCE):
            some = people[first : first + PEOPLE_AT_ONCE]
            ids, scores = model.recommend(some, **options)
            there = np.isfinite(scores)
            users_of, places = np.nonzero(there)
            frame = pl.DataFrame(
                {
                    "user": some[users_of].tolist(),
                    "rank": places + 1,
                    "item": ids[there].tolist(),
                    "score": scores[there],
                }
            )
            written += len(frame)
            yield frame
            if progress is not None:
                progress(min(first + PEOPLE_AT_ONCE, len(people)), len(people))

    with atomic(path) as temporary:
        LISTS[kind](parts(), temporary)
    return written


@LISTS.register("parquet")
def _parquet(parts: Parts, path: Path) -> None:
    pl.concat(list(parts)).write_parquet(path)


@LISTS.register("csv")
def _csv(parts: Parts, path: Path) -> None:
    with path.open("wb") as file:
        for number, part in enumerate(parts):
            part.write_csv(file, include_header=number == 0)


@LISTS.register("jsonl")
def _jsonl(parts: Parts, path: Path) -> None:
    with path.open("wb") as file:
        for part in parts:
            part.write_ndjson(file)


def export(model: Recommender, folder: str | Path, to: str = "npy") -> Path:
    """Write a model's vectors and ids for other programs, as a whole or not at all.

    Parameters
    ----------
    model
        A fitted model that has vectors.
    folder
        New folder.
    to
        ``npy`` (arrays as they are), ``parquet`` (one row per vector, with its id), or ``faiss-ready``: item vectors
        and, per user, C queries, contiguous float32, with a note on how they are used.

    Examples
    --------
    >>> import tempfile
    >>> from dpcml import CML
    >>> model = CML(dim=4, epochs=2, n_candidates=2).fit(np.kron(np.eye(2), np.ones((3, 4))))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     sorted(file.name for file in export(model, Path(place) / "out").iterdir())
    ['about.json', 'item_ids.json', 'item_vectors_.npy', 'user_ids.json', 'user_vectors_.npy']
    """
    folder = Path(folder)
    if to not in EXPORTS:
        raise ParameterError(f"--to {to!r}: {did_you_mean(to, EXPORTS)}")
    if folder.exists():
        raise ParameterError(f"{folder} is there already: name a new folder")
    with atomic_folder(folder) as temporary:
        EXPORTS[to](model, temporary)
        about = {"model": model.name, "format": to, "data_hash": model.train_.content_hash}
        (temporary / "about.json").write_text(json.dumps({**about, **_shapes(model)}, indent=2), encoding="utf-8")
        for name in ("user_ids", "item_ids"):
            (temporary / f"{name}.json").write_text(json.dumps(getattr(model.train_, name).tolist()), encoding="utf-8")
    return folder


def _shapes(model: Recommender) -> dict[str, Any]:
    return {"shapes": {name: list(values.shape) for name, values in model._arrays().items()}}


@EXPORTS.register("npy")
def _npy(model: Recommender, folder: Path) -> None:
    for name, values in model._arrays().items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)


def _vectors(model: Recommender) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of users, shape (users, C, d), and items, shape (items, d)."""
    names = (("user_vectors_", "item_vectors_"), ("user_factors_", "item_factors_"))
    for user, item in names:
        if hasattr(model, user) and hasattr(model, item):
            users = np.asarray(getattr(model, user))
            return users if users.ndim == 3 else users[:, None, :], np.asarray(getattr(model, item))
    raise ParameterError(f"{type(model).__name__} has no vectors of users and items: export it to npy")


@EXPORTS.register("parquet")
def _parquet_vectors(model: Recommender, folder: Path) -> None:
    users, items = _vectors(model)
    count, per_user, dim = users.shape
    rows = np.repeat(np.arange(count), per_user)
    values = np.ascontiguousarray(users.reshape(-1, dim), dtype=np.float32)
    ids = model.train_.user_ids[rows].tolist()
    frame = pl.DataFrame({"user": ids, "vector": np.tile(np.arange(per_user), count), "values": values})
    frame.write_parquet(folder / "users.parquet")
    values = np.ascontiguousarray(items, dtype=np.float32)
    pl.DataFrame({"item": model.train_.item_ids.tolist(), "values": values}).write_parquet(folder / "items.parquet")


@EXPORTS.register("faiss-ready")
def _faiss_ready(model: Recommender, folder: Path) -> None:
    users, items = _vectors(model)
    np.save(folder / "items.npy", np.ascontiguousarray(items, dtype=np.float32), allow_pickle=False)
    np.save(folder / "queries.npy", np.ascontiguousarray(users, dtype=np.float32), allow_pickle=False)
    (folder / "how.txt").write_text(
        "items.npy (items, d) float32: add to an index of squared Euclidean distances; of inner products where the"
        " model has factors.\nqueries.npy (users, C, d) float32: ask with each of a user's C rows, merge by the best.\n"
        "Rows are in the order of user_ids.json and item_ids.json.\n",
        encoding="utf-8",
    )
