"""Exports: the recommendations of many users in one file, and the arrays of a model for other programs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.models import Recommender
from dpcml.models.blend import Blend
from dpcml.models.dpcml import GFJA
from dpcml.models.ease import EASE
from dpcml.models.ials import IALS
from dpcml.models.implicit_mf import ImplicitMF
from dpcml.models.item_item import ItemItem
from dpcml.models.multi_interest import MultiInterest
from dpcml.retrieval.lists import list_frame, request_ids
from dpcml.retrieval.onnx_graph import ScoreGraph
from dpcml.retrieval.projection import project_items
from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import atomic, atomic_folder, full_path
from dpcml.utils.names import Registry
from dpcml.utils.packages import version

if TYPE_CHECKING:
    import polars as pl

BLOCK = 2048  # users per call of recommend
KIND, ABOUT, MAP = "dpcml export", "export.json", "item_map.npy"

WRITERS: Registry[Callable[[Iterator[pl.DataFrame], Path], None]] = Registry("file format")
EXPORTS: Registry[Callable[[Recommender, Path], dict[str, Any]]] = Registry("export format")


def write_recommendations(
    model: Recommender,
    path: str | Path,
    users: Array | None = None,
    n: int = 10,
    *,
    explain: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> int:
    """Write the recommendations of many users to one file, in blocks; the file is replaced atomically.

    Parameters
    ----------
    model
        A fitted model.
    path
        A ``.parquet``, ``.csv`` or ``.jsonl`` file. It gets one row per user and item with the columns user_id, rank,
        item_id and score, and with ``explain`` also interest, share and reason.
    users
        External user ids; all users by default.
    n
        Maximum number of items per user.
    explain
        Add a reason for each item.
    progress
        Called after each block with the number of finished users and the number of all users.
    **options
        Further options of ``recommend``.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> model = Popularity().fit(np.array([[1, 1, 0], [0, 0, 1]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = write_recommendations(model, Path(folder) / "lists.csv", n=1)
    ...     print((Path(folder) / "lists.csv").read_text())
    user_id,rank,item_id,score
    0,1,2,1.0
    1,1,0,1.0
    """
    path = Path(path)
    write = WRITERS[path.suffix.removeprefix(".")]
    wanted = wanted_users(model, users, options.get("on_unknown", "error"))
    rows = 0

    def blocks() -> Iterator[pl.DataFrame]:
        nonlocal rows
        for first in range(0, len(wanted), BLOCK):
            some = wanted[first : first + BLOCK]
            frame = list_frame("user_id", some, model.recommend(some, n, explain=explain, **options))
            rows += len(frame)
            yield frame
            if progress is not None:
                progress(min(first + BLOCK, len(wanted)), len(wanted))

    with atomic(path) as temporary:
        write(blocks(), temporary)
    return rows


def wanted_users(model: Recommender, users: Array | None, on_unknown: str) -> Array:
    """Return the ids of the users whose lists are written: an unknown id is an error before hours of work.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> model = Popularity().fit(np.eye(3))
    >>> wanted_users(model, np.array([2, 7]), "skip").tolist(), wanted_users(model, None, "error").tolist()
    ([2], [0, 1, 2])
    """
    train = model.check_fitted()
    wanted = train.user_ids
    if users is not None:
        wanted, known = request_ids(train, users)
        if on_unknown == "error":
            wanted = train.user_ids[train.user_rows(users)]
        elif on_unknown == "skip":
            wanted = wanted[known >= 0]
    if not len(wanted):
        raise ParameterError("there are no users: pass at least one id")
    return wanted


@WRITERS.register("csv")
def _write_csv(blocks: Iterator[pl.DataFrame], path: Path) -> None:
    with path.open("wb") as file:
        for number, frame in enumerate(blocks):
            frame.write_csv(file, include_header=number == 0)


@WRITERS.register("jsonl")
def _write_jsonl(blocks: Iterator[pl.DataFrame], path: Path) -> None:
    with path.open("wb") as file:
        for frame in blocks:
            frame.write_ndjson(file)


@WRITERS.register("parquet")
def _write_parquet(blocks: Iterator[pl.DataFrame], path: Path) -> None:
    """Write each block to a file and concatenate the files as a stream, so that memory holds one block."""
    import polars as pl

    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".dpcml-") as folder:
        parts = []
        for number, frame in enumerate(blocks):
            parts.append(Path(folder) / f"{number}.parquet")
            frame.write_parquet(parts[-1])
        pl.scan_parquet(parts).sink_parquet(path)


def export(model: Recommender, to: str, folder: str | Path) -> Path:
    """Write the arrays of a model to a folder, with ``export.json`` that describes them.

    Every export also holds ``item_map.npy``, the items in two dimensions as on the explorer page.

    Parameters
    ----------
    model
        A fitted model.
    to
        ``npy`` (all arrays, any model), ``parquet`` (one row per vector), ``faiss-ready`` (arrays for an index with
        squared Euclidean distances) or ``onnx`` (a graph that computes the scores, and for models with interests one
        for new users, which a blend with BPR lacks; the extra ``onnx``). ``parquet`` and ``faiss-ready`` need a model
        with several vectors per user, ``onnx`` one of these, an item-item model, iALS, BPR or a blend of them.
    folder
        A new or empty folder, or an older export, which is replaced.

    Examples
    --------
    >>> from dpcml import EASE
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = export(EASE().fit(np.eye(4)), "npy", Path(place) / "arrays")
    ...     sorted(file.name for file in folder.iterdir())
    ['export.json', 'item_ids.txt', 'item_map.npy', 'user_ids.txt', 'weights_.npy']
    """
    target, train = full_path(folder), model.check_fitted()
    write = EXPORTS[to]
    if target.exists() and not target.is_dir():
        raise DataError(f"{folder}: is a file; name a folder")
    _check_free(Path(folder))
    with atomic_folder(target) as new:
        about = write(model, new)
        for name, ids in (("user_ids.txt", train.user_ids), ("item_ids.txt", train.item_ids)):
            (new / name).write_text(_lines(ids, name), encoding="utf-8")
        card = {"kind": KIND, "form": to, "model": model.name, "version": version(), **about}
        np.save(new / MAP, _places(model), allow_pickle=False)
        card |= {"map": f"{MAP}: x and y of each item, from -1 to 1"}
        card |= {"files": sorted(file.name for file in new.iterdir())}
        card |= {"ids": "user_ids.txt and item_ids.txt hold one id per line, in the order of the arrays"}
        (new / ABOUT).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return target


def _check_free(folder: Path) -> None:
    """Raise `DataError` for a folder that holds other files than those of an older export."""
    found = {file.name for file in folder.iterdir()} if folder.exists() else set()
    if not found:
        return
    try:
        card = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        known = {ABOUT, *card["files"]} if card["kind"] == KIND else set()
    except (OSError, ValueError, KeyError, TypeError):
        known = set()
    if not known:
        raise DataError(f"{folder}: is not empty and not an older export; name a new folder")
    if others := sorted(found - known):
        raise DataError(f"{folder}: holds {others[0]!r}, which is not part of the older export; name a new folder")


def _lines(ids: Array, name: str) -> str:
    """Return ids as text, one per line."""
    lines = [str(one) for one in ids.tolist()]
    for one in lines:
        if "".join(one.splitlines()) != one:  # also at its end
            raise DataError(f"id {one!r} has a line break, but {name} holds one id per line; rename it in the data")
    return "".join(f"{one}\n" for one in lines)


def _places(model: Recommender) -> FloatArray:
    """Return the coordinates of every item on the map; shape (items, 2)."""
    train = model.check_fitted()
    found = project_items(train, getattr(model, "item_vectors_", None), train.n_items)
    places = np.empty((len(found.rows), 2), np.float32)
    places[found.rows] = found.places
    return places


@EXPORTS.register("npy")
def _to_npy(model: Recommender, folder: Path) -> dict[str, Any]:
    arrays = model.to_arrays()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    return {"arrays": {name: {"shape": values.shape, "type": str(values.dtype)} for name, values in arrays.items()}}


@EXPORTS.register("parquet")
def _to_parquet(model: Recommender, folder: Path) -> dict[str, Any]:
    import polars as pl

    vectors, train = _with_vectors(model), model.check_fitted()
    users, items = vectors.user_vectors_, vectors.item_vectors_
    rows = np.repeat(np.arange(train.n_users), users.shape[1])
    numbers = np.tile(np.arange(users.shape[1]), train.n_users)
    flat = pl.Series(users.reshape(-1, users.shape[2]))
    pl.DataFrame({"user_id": train.user_ids[rows].tolist(), "number": numbers, "vector": flat}).write_parquet(
        folder / "users.parquet"
    )
    titles = [train.items.title(item) for item in range(train.n_items)]
    columns = {"item_id": train.item_ids.tolist(), "title": titles, "vector": pl.Series(np.ascontiguousarray(items))}
    pl.DataFrame(columns).write_parquet(folder / "items.parquet")
    return {"score": _RULE}


@EXPORTS.register("faiss-ready")
def _to_faiss(model: Recommender, folder: Path) -> dict[str, Any]:
    vectors = _with_vectors(model)
    users = np.ascontiguousarray(vectors.user_vectors_, dtype=np.float32)
    np.save(folder / "items.npy", np.ascontiguousarray(vectors.item_vectors_, dtype=np.float32))
    np.save(folder / "queries.npy", users.reshape(-1, users.shape[2]))
    return {
        "metric": "squared L2",
        "dim": users.shape[2],
        "queries_per_user": users.shape[1],
        "score": _RULE,
        "use": "add items.npy to an index; rows C*u to C*u+C-1 of queries.npy are the vectors of user u; merge their"
        " results by the smallest distance, keep each item once, and drop items that the user has seen",
    }


@EXPORTS.register("onnx")
def _to_onnx(model: Recommender, folder: Path) -> dict[str, Any]:
    train, inputs = model.check_fitted(), dict[str, Any]()
    forms = {"scores.onnx": False} | ({"scores_new.onnx": True} if _takes_new_users(model) else {})
    for name, new in forms.items():
        graph = ScoreGraph()
        graph.write(_scores(graph, model, new), train.n_items, folder / name)
        inputs[name] = {key: {"type": kind, "shape": shape} for key, (kind, shape) in graph.inputs.items()}
    weighted = {"weights": "likes have weights, which model.score counts and a history of ones does not"}
    return {
        **({} if train.weights is None else weighted),
        "inputs": inputs,
        "output": "scores, shape (batch, items): those of model.score; items in the order of item_ids.txt",
        "use": "users: rows of known users, the order of user_ids.txt; vectors: of new users, what model.fold_in"
        " returns; history: ones for the items that a user likes, else zeros",
    }


def _takes_new_users(model: Recommender) -> bool:
    """Return whether a model has interests, and no member that knows the users of its training alone."""
    members: list[Recommender] = getattr(model, "members_", [])
    fixed = any(isinstance(one, ImplicitMF) and not isinstance(one, IALS) for one in members)
    return model.multi_interest is not None and not fixed


def _scores(graph: ScoreGraph, model: Recommender, new: bool) -> str:
    """Add what computes the scores of a model to a graph, for new users or for known ones; return its name."""
    if isinstance(model, MultiInterest):
        users = model.user_vectors_
        vectors = graph.new_vectors(*users.shape[1:]) if new else graph.known_vectors(users)
        scores = graph.nearest(vectors, model.item_vectors_)
        return graph.affine(scores, 0.5, 1.0) if isinstance(model, GFJA) else scores  # inner products on the sphere
    if isinstance(model, ItemItem) and not (isinstance(model, EASE) and model.form_ == "dual"):
        return graph.weighted_history(model.item_weights())
    if isinstance(model, IALS) and new:
        factors = graph.ridge_factors(
            model.item_factors_, model.ridge_products().astype(np.float32), model.confidence - 1
        )
        return graph.inner_products(factors, model.item_factors_)
    if isinstance(model, ImplicitMF) and not new:
        return graph.inner_products(graph.known_vectors(model.user_factors_), model.item_factors_)
    if isinstance(model, Blend):
        train, parts = model.check_fitted(), list[str]()
        n_items, attributes = train.n_items, train.items.attributes
        for member, weight in zip(model.members_, model.weights_.tolist(), strict=True):
            parts.append(graph.affine(graph.standardised(_scores(graph, member, new), n_items), weight))
        if attributes is not None and model.minority_bonus_[0]:
            added = graph.standardised(graph.minority(attributes), n_items)
            parts.append(graph.affine(added, float(model.minority_bonus_[0])))
        return graph.node("Sum", *parts)
    form = " in its dual form" if isinstance(model, EASE) else ""
    raise ParameterError(
        f"{type(model).__name__}{form} has no ONNX graph: export to npy, or train dpcml, cml, gfja, ease, rp3beta,"
        " itemknn, ials or a blend of them"
    )


_RULE = "minus the smallest squared distance between the item's vector and a vector of the user"


def _with_vectors(model: Recommender) -> MultiInterest:
    found = model.multi_interest
    if found is None:
        raise ParameterError(f"{type(model).__name__} has no user and item vectors: export to npy, or train dpcml")
    return found
