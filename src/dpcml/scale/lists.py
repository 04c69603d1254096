"""`write_parts`: recommendations of many users on Ray, in Parquet parts; a run that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from dpcml import storage
from dpcml.export import BLOCK, wanted_users, write_recommendations
from dpcml.models import Recommender
from dpcml.scale.pool import map_model
from dpcml.scale.runner import check_cores
from dpcml.utils.arrays import Array
from dpcml.utils.checks import at_least
from dpcml.utils.cluster import ray_session
from dpcml.utils.errors import DataError, RecoveryWarning
from dpcml.utils.files import full_path, write_text
from dpcml.utils.threads import thread_count

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

    A part that is there already is not made again, unless it is damaged: a run that was cut off goes on where it was.

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
    plan = {"model": card["checksum"], "users": _digest(wanted), "n": n, "part_users": size, **options}
    _check_plan(target, plan)
    missing = [part for part in parts if not _is_sound(Path(part[0]))]
    done = len(wanted) - sum(len(ids) for _, ids in missing)
    if missing:
        threads = max(1, thread_count() // workers)
        with ray_session(address, cores=workers * threads) as ray:  # without Ray, the folder stays as it was
            check_cores(ray, workers, threads)
            _write_plan(target, plan)
            tasks = [(path, ids, n, options) for path, ids in missing]
            made = map_model(place, write_part, tasks, workers=workers, address=address, n_threads=threads)
            for (_, ids), _ in zip(missing, made, strict=True):
                done += len(ids)
                if progress is not None:
                    progress(done, len(wanted))
    return sum(int(pl.scan_parquet(path).select(pl.len()).collect().item()) for path, _ in parts)


def write_part(model: Recommender, path: str, users: Array, n: int, options: dict[str, Any]) -> int:
    """Write the lists of some users, whole or not at all."""
    return write_recommendations(model, path, users, n, **options)


def _digest(ids: Array) -> str:
    return hashlib.sha256(json.dumps(ids.tolist()).encode()).hexdigest()


def _is_sound(part: Path) -> bool:
    """Return whether a part is there and can be read; one that is damaged is made again, with a warning."""
    if not part.exists():
        return False
    try:
        pl.read_parquet(part)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        warnings.warn(f"{part}: is damaged ({_line(error)}); it is made again", RecoveryWarning, stacklevel=3)
        return False
    return True


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:100]


def _check_plan(out: Path, plan: dict[str, Any]) -> None:
    """Check that a folder is free, or that its parts are of the same plan."""
    said = _written(plan)
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


def _write_plan(out: Path, plan: dict[str, Any]) -> None:
    write_text(out / PLAN, json.dumps(_written(plan), indent=1) + "\n")


def _written(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan as JSON holds it."""
    found: dict[str, Any] = json.loads(json.dumps(plan, default=str))
    return found
