"""`write_parts`: recommendations of many users on Ray, in Parquet parts; a run that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from dpcml import storage
from dpcml.export import BLOCK, wanted_users, write_recommendations
from dpcml.models import Recommender
from dpcml.scale.pool import map_model
from dpcml.utils.arrays import Array
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError
from dpcml.utils.files import full_path, write_text

PLAN = "parts.json"  # what the parts are of: those of another run are never mixed with them
PART_USERS = 8 * BLOCK


def write_parts(
    folder: str | Path,
    out: str | Path,
    users: Array | None = None,
    n: int = 10,
    *,
    workers: int = 1,
    address: str | None = None,
    part_users: int = PART_USERS,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> int:
    """Write the recommendations of many users to a folder of Parquet files, which together are what one file would be.

    A part that is there already is not made again: a run that was cut off goes on where it was.

    Parameters
    ----------
    folder
        A saved model; all machines must see it, and ``out``, under the same path.
    out
        A new folder, or that of a run with the same model, users and options.
    users
        External ids; all users by default.
    n
        Maximum number of items per user.
    workers, address
        See `dpcml.scale.RayRunner`.
    part_users
        Users of a part, rounded up to whole blocks.
    progress
        Called after each part with the number of finished users and that of all.
    **options
        Further options of `Recommender.recommend`, and ``explain``.

    Returns
    -------
    int
        Number of rows in all parts.
    """
    at_least("workers", workers, 1)
    at_least("part_users", part_users, 1)
    place, target = full_path(folder), full_path(out)
    card = storage.read_card(place)
    wanted = wanted_users(storage.load(place), users, options.get("on_unknown", "error"))
    size = -(-part_users // BLOCK) * BLOCK
    parts = [
        (str(target / f"part-{number:05d}.parquet"), wanted[first : first + size])
        for number, first in enumerate(range(0, len(wanted), size))
    ]
    _claim(target, {"model": card["checksum"], "users": _digest(wanted), "n": n, "part_users": size, **options})
    missing = [part for part in parts if not Path(part[0]).exists()]
    done = len(wanted) - sum(len(ids) for _, ids in missing)
    if missing:
        tasks = [(path, ids, n, options) for path, ids in missing]
        for (_, ids), _ in zip(
            missing, map_model(place, write_part, tasks, workers=workers, address=address), strict=True
        ):
            done += len(ids)
            if progress is not None:
                progress(done, len(wanted))
    return sum(int(pl.scan_parquet(path).select(pl.len()).collect().item()) for path, _ in parts)


def write_part(model: Recommender, path: str, users: Array, n: int, options: dict[str, Any]) -> int:
    """Write the lists of some users, whole or not at all."""
    return write_recommendations(model, path, users, n, **options)


def _digest(ids: Array) -> str:
    return hashlib.sha256(json.dumps(ids.tolist()).encode()).hexdigest()


def _claim(out: Path, plan: dict[str, Any]) -> None:
    """Write what the parts will be of, or check that it is what they are of."""
    said = json.loads(json.dumps(plan, default=str))
    path = out / PLAN
    if path.exists():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({error}); name another folder") from None
        different = sorted(name for name in {*said, *found} if said.get(name) != found.get(name))
        if different:
            raise DataError(f"{out}: holds parts of a run with other {', '.join(different)}; name another folder")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: holds something else than parts of lists; name a new folder")
    else:
        write_text(path, json.dumps(said, indent=1) + "\n")
