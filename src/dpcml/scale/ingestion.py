"""`ingest`: files of any size to a folder of shards; memory holds the ids, one batch of rows and one shard.

Rows are read three times at most: once for the ids, once to sort them by user into files on disk, one for each shard,
and then shard by shard to drop duplicates, apply the thresholds and split by a hash of user and item. Columns of ids
that are floats are read once more before.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import save_file

from dpcml.data.columns import encode_ids, numbers
from dpcml.data.interactions import Preparation
from dpcml.data.prepare import Rules
from dpcml.data.shards import FORMAT, ITEMS, KIND, LOW, MANIFEST, PARTS, encoded, is_shards
from dpcml.data.split import check_shares
from dpcml.scale.rows import BATCH, FileRows, IdForm, id_form
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError
from dpcml.utils.files import atomic_folder, full_path, signed, to_json
from dpcml.utils.packages import version

SHARD_ROWS = 2**22  # rows of a shard, about; a shard is sorted in memory
MOST_SHARDS = 4096  # files that rows are sorted into
SHARES = (0.6, 0.2, 0.2)


def ingest(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    rules: Rules | None = None,
    separator: str | None = None,
    header: bool | None = None,
    parts: Sequence[float] = SHARES,
    split_seed: int = 0,
    shard_rows: int = SHARD_ROWS,
) -> Path:
    """Stream CSV, TSV and Parquet files to a folder of shards, see `dpcml.data.shards`.

    The positives are those that `dpcml.Interactions.from_file` would give for all files together. A pair of user and
    item belongs to the part that a hash of both ids says, whatever other pairs there are. Ids that are integers have
    other hashes than the same ids as text: one text id among them makes a column text, and deals all its pairs anew.
    A user who would have nothing to train on keeps the pair with the smallest hash. Times and titles are not kept.

    Parameters
    ----------
    files
        Files with the same columns.
    out
        Folder of the shards; older shards there are replaced once the new ones are whole.
    user, item, rating
        Names of columns, guessed by default.
    rules
        Thresholds, see `dpcml.data.prepare.Rules`.
    separator, header
        Of text files: by default a comma (a tab in .tsv files), and a header.
    parts
        Shares of training, validation and test part.
    split_seed
        Seed of the hash.
    shard_rows
        Rows of a shard, about. Memory grows with it.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for k in range(2):
    ...         rows = pl.DataFrame({"user": [k, k, 7], "item": ["tea", "jam", "tea"]})
    ...         rows.write_csv(f"{place}/likes-{k}.csv")
    ...     folder = ingest([f"{place}/likes-0.csv", f"{place}/likes-1.csv"], f"{place}/shards")
    ...     said = json.loads((folder / "manifest.json").read_text())
    >>> said["users"], said["items"], said["positives"], said["preparation"]["duplicates"]
    (3, 2, 5, 1)
    """
    shares = check_shares(parts)
    if len(shares) != len(PARTS):
        raise DataError(f"parts={tuple(parts)!r}: shards have three parts; pass shares for training, validation, test")
    at_least("shard_rows", shard_rows, 1)
    at_least("split_seed", split_seed, 0)
    target, wanted = _free(out), rules or Rules()
    source = FileRows([Path(file) for file in files], {"user": user, "item": item, "rating": rating}, separator, header)
    if wanted.min_rating is not None and "rating" not in source.columns:
        raise DataError(f"min_rating={wanted.min_rating:g}, but there is no rating column to compare it with")
    forms = {kind: id_form(source, kind, wanted.text_ids) for kind in ("user", "item")}
    users, items, counts = _distinct(source, forms, wanted.text_ids)
    edges = _edges(counts, shard_rows)
    with atomic_folder(target) as new:
        work = new / ".rows"
        work.mkdir()
        rows = Buckets(work, edges, len(items.ids))
        done = rows.fill(source, forms, {"user": users, "item": items}, wanted.min_rating)
        keep_users, keep_items = _core(rows, len(users.ids), wanted)
        done["users_dropped"] = int((~keep_users).sum())
        done["items_dropped"] = int((~keep_items).sum())
        split = _HashSplit(_hashes(users.ids), _hashes(items.ids), shares, split_seed)
        writer = _Writer(new, users.ids, items.ids[keep_items], keep_users, keep_items)
        for number in range(len(edges) - 1):
            writer.write(rows.read(number), int(edges[number]), int(edges[number + 1]), split)
        shutil.rmtree(work)
        writer.finish(Preparation(**done, notes=source.notes), asdict(wanted), split.rule)
    return target


def _free(out: str | Path) -> Path:
    target = full_path(out)
    if target.exists() and not is_shards(target) and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{out}: holds something else than shards; name a new folder")
    return target


class Ids:
    """Distinct ids in order, and the position of each value that stands for one."""

    def __init__(self, values: pl.Series, kind: str, source: str, text: bool) -> None:
        codes, self.ids = encode_ids(values, kind, lambda row: source, text)
        self._codes = codes.astype(np.int32)
        self._table: pl.DataFrame | None = None
        if values.dtype.is_integer():
            order = np.argsort(values.to_numpy())
            self._values, self._codes = values.to_numpy()[order], self._codes[order]
        else:
            self._table = pl.DataFrame({"id": values, "code": self._codes})

    def codes(self, column: pl.Series) -> IntArray:
        """Return the position of each value."""
        if self._table is None:
            return self._codes[np.searchsorted(self._values, column.to_numpy())]
        found = pl.DataFrame({"id": column.cast(pl.String)}).join(
            self._table, on="id", how="left", maintain_order="left"
        )
        return found["code"].to_numpy()


def _distinct(source: FileRows, forms: Mapping[str, IdForm], text: bool) -> tuple[Ids, Ids, IntArray]:
    """Return users, items, and the number of rows of each user."""
    parts: dict[str, list[pl.DataFrame]] = {"user": [], "item": []}
    size, done = dict.fromkeys(parts, 0), dict.fromkeys(parts, 0)
    for batch, where in source.batches("user", "item"):
        for kind, found in parts.items():
            column = forms[kind].plain(batch[kind], where)
            found.append(column.to_frame("id").group_by("id").len("n"))
            size[kind] += len(found[-1])
            if size[kind] > 2 * done[kind] + BATCH:  # so that memory follows the distinct ids, not the rows
                found[:] = [_counted(found)]
                size[kind] = done[kind] = len(found[0])
    if not parts["user"]:
        raise DataError(f"{source.files[0]}: no rows; at least one interaction is needed")
    tables = {kind: _counted(found) for kind, found in parts.items()}
    name = str(source.files[0]) if len(source.files) == 1 else f"{source.files[0]} and others"
    users, items = (Ids(tables[kind]["id"], kind, name, text) for kind in ("user", "item"))
    counts = np.bincount(users.codes(tables["user"]["id"]), tables["user"]["n"].to_numpy(), len(users.ids))
    return users, items, counts.astype(np.int64)


def _counted(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).group_by("id").agg(pl.col("n").sum())


def _edges(counts: IntArray, shard_rows: int) -> IntArray:
    """Return the first user of each shard, and the number of users.

    Examples
    --------
    >>> _edges(np.array([3, 1, 1, 3]), 4).tolist()
    [0, 2, 4]
    """
    n_shards = min(max(1, -(-int(counts.sum()) // shard_rows)), MOST_SHARDS, len(counts))
    wanted = np.linspace(0, counts.sum(), n_shards + 1)[1:-1]
    inner = np.searchsorted(np.cumsum(counts), wanted) + 1
    return np.unique(np.concatenate([[0], inner[inner < len(counts)], [len(counts)]]))


class Buckets:
    """Rows on disk, sorted by shard. A row is a number: the user, the item, and whether it is below the threshold."""

    def __init__(self, folder: Path, edges: IntArray, n_items: int) -> None:
        self._folder, self._edges, self.n_items = folder, edges, n_items

    def __len__(self) -> int:
        return len(self._edges) - 1

    def fill(
        self, source: FileRows, forms: Mapping[str, IdForm], ids: Mapping[str, Ids], min_rating: float | None
    ) -> dict[str, int]:
        """Sort all rows into the shards, without duplicates; return counts."""
        rows = below = 0
        roles = ("user", "item") if min_rating is None else ("user", "item", "rating")
        for batch, where in source.batches(*roles):
            codes = [
                ids[kind].codes(forms[kind].plain(batch[kind], where)).astype(np.int64) for kind in ("user", "item")
            ]
            low = np.zeros(len(batch), dtype=np.int64)
            if min_rating is not None:
                low = (numbers(batch["rating"], "rating", where) < min_rating).astype(np.int64)
            self._append(codes[0], codes[0] << 33 | codes[1] << 1 | low)
            rows, below = rows + len(batch), below + int(low.sum())
        kept = 0
        for number in range(len(self)):
            keys = np.sort(self.read(number))
            keys = (
                keys[np.append(True, keys[1:] >> 1 != keys[:-1] >> 1)] if len(keys) else keys
            )  # a positive comes first
            self._path(number).write_bytes(keys.data)  # ndarray.tofile does not notice a full disk
            kept += int((keys & 1 == 0).sum())
        return {"rows": rows, "below_rating": below, "duplicates": rows - below - kept}

    def _append(self, users: IntArray, keys: IntArray) -> None:
        shard = np.searchsorted(self._edges, users, side="right") - 1
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(len(self) + 1))
        for number in np.flatnonzero(np.diff(ends)).tolist():
            with self._path(number).open("ab") as file:
                file.write(keys[order[ends[number] : ends[number + 1]]].data)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}"

    def read(self, number: int) -> IntArray:
        """Return the rows of a shard."""
        path = self._path(number)
        return np.fromfile(path, dtype=np.int64) if path.exists() else np.zeros(0, dtype=np.int64)


def users_of(keys: IntArray) -> IntArray:
    """Return the users of rows."""
    return keys >> 33


def items_of(keys: IntArray) -> IntArray:
    """Return the items of rows."""
    return (keys >> 1) & (2**32 - 1)


def _core(rows: Buckets, n_users: int, rules: Rules) -> tuple[BoolArray, BoolArray]:
    """Return which users and items stay: those with enough positives among users and items that stay."""
    least_user = max(rules.min_user_interactions, rules.core)
    least_item = max(rules.min_item_interactions, rules.core)
    users, items = np.ones(n_users, dtype=bool), np.ones(rows.n_items, dtype=bool)
    most: tuple[int, int] | None = None  # positives of a user and of an item, before any are dropped
    while True:
        per_user, per_item = np.zeros(n_users, dtype=np.int64), np.zeros(rows.n_items, dtype=np.int64)
        for number in range(len(rows)):
            keys = rows.read(number)
            keys = keys[(keys & 1 == 0) & users[users_of(keys)] & items[items_of(keys)]]
            per_item += np.bincount(items_of(keys), minlength=rows.n_items)
            if len(keys):
                some, counts = np.unique(users_of(keys), return_counts=True)
                per_user[some] = counts
        most = most or (int(per_user.max()), int(per_item.max()))
        enough = per_user >= least_user, per_item >= least_item
        if not (enough[0].any() and enough[1].any()):
            raise DataError(rules.nothing_left(n_users, *most))
        if (enough[0] == users).all() and (enough[1] == items).all():
            return users, items
        users, items = enough


def _hashes(ids: Array) -> IntArray:
    """Return 64 bits for each id, which depend on nothing else."""
    if ids.dtype.kind == "i":
        return _mix(ids.astype(np.uint64))
    words = (str(one).encode("utf-8", "surrogatepass") for one in ids.tolist())
    return np.frombuffer(b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in words), dtype="<u8")


def _mix(x: IntArray) -> IntArray:
    """Hash 64 bits (SplitMix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class _HashSplit:
    """The part of a pair, from a hash of both ids."""

    users: IntArray
    items: IntArray
    shares: Sequence[float]
    seed: int

    @property
    def rule(self) -> str:
        written = "/".join(f"{share:g}" for share in self.shares)
        return f"hash of user and item {written}, seed {self.seed}"

    def parts(self, keys: IntArray) -> IntArray:
        """Return 0, 1 or 2 for each row; rows are sorted by user."""
        if not len(keys):
            return np.zeros(0, dtype=np.int64)
        who = users_of(keys)
        mixed = _mix(self.users[who] ^ _mix(self.items[items_of(keys)] + np.uint64(self.seed)))
        chance: FloatArray = (mixed >> np.uint64(11)) / 2.0**53
        part = np.searchsorted(np.cumsum(self.shares)[:-1], chance, side="right")
        starts = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
        none = np.minimum.reduceat(part, starts) > 0
        order = np.lexsort((chance, who))  # the rows of a user stay together
        part[order[starts[none]]] = 0
        return part


class _Writer:
    """Writes shards and, at the end, items and manifest."""

    def __init__(
        self, folder: Path, user_ids: Array, item_ids: Array, keep_users: BoolArray, keep_items: BoolArray
    ) -> None:
        self._folder, self._user_ids, self._item_ids = folder, user_ids, item_ids
        self._users, self._items = keep_users, keep_items
        self._column = np.cumsum(keep_items) - 1
        self._per_item = {part: np.zeros(len(item_ids), dtype=np.int64) for part in PARTS}
        self._entries: list[dict[str, Any]] = []

    def write(self, keys: IntArray, first: int, last: int, split: _HashSplit) -> None:
        """Write the shard of the users ``first`` to ``last``, if any of them stays."""
        staying = self._users[first:last]
        if not staying.any():
            return
        row = np.cumsum(staying) - 1
        keys = keys[self._users[users_of(keys)] & self._items[items_of(keys)]]
        low, keys = keys[keys & 1 == 1], keys[keys & 1 == 0]
        arrays = encoded("user_ids", self._user_ids[first:last][staying])
        part = split.parts(keys)
        groups = {name: keys[part == number] for number, name in enumerate(PARTS)} | {LOW: low}
        for name, some in groups.items():
            rows = row[users_of(some) - first]
            counts = np.bincount(rows, minlength=int(staying.sum()))
            arrays[f"{name}.indptr"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            arrays[f"{name}.indices"] = self._column[items_of(some)].astype(np.int32)
            if name in self._per_item:
                self._per_item[name] += np.bincount(arrays[f"{name}.indices"], minlength=len(self._item_ids))
        file = f"shard-{len(self._entries):05d}.safetensors"
        save_file(arrays, self._folder / file)
        said = {f"{name}_positives": len(groups[name]) for name in PARTS}
        self._entries.append({"file": file, "users": int(staying.sum()), **said})

    def finish(self, done: Preparation, rules: dict[str, Any], rule: str) -> None:
        """Write items and manifest."""
        counts = {f"per_item.{name}": values for name, values in self._per_item.items()}
        save_file(encoded("item_ids", self._item_ids) | counts, self._folder / ITEMS)
        files = {}
        for name in [ITEMS, *(entry["file"] for entry in self._entries)]:
            path = self._folder / name
            path.chmod(0o644)  # safetensors would keep them from other users
            with path.open("rb") as file:
                files[name] = {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
        content = json.dumps([rule, *(said["sha256"] for said in files.values())])
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "version": version(),
            "users": sum(entry["users"] for entry in self._entries),
            "items": len(self._item_ids),
            "positives": sum(entry[f"{name}_positives"] for entry in self._entries for name in PARTS),
            "split": {"rule": rule, "hash": hashlib.sha256(content.encode()).hexdigest()[:16]},
            "rules": rules,
            "preparation": asdict(done),
            "shards": self._entries,
            "files": files,
        }
        (self._folder / MANIFEST).write_text(to_json(signed(manifest)) + "\n", encoding="utf-8")
