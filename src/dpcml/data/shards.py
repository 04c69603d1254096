"""A folder of shards: positives of users in memory-mapped CSR files, split by a hash, with a manifest.

==========================  ==========================================================================================
``manifest.json``           format, version, counts, rules, split, checksums of every file and of itself
``items.safetensors``       ids of the items, and how many positives each has in every part
``shard-00000.safetensors`` consecutive users: their ids and, for each part, ``indptr`` and ``indices``
==========================  ==========================================================================================

Users are in the order of their ids, from shard to shard. Ids that are texts are kept as UTF-8 bytes and offsets.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import ItemTable
from dpcml.data.split import Split
from dpcml.utils.array_files import map_arrays
from dpcml.utils.arrays import Array, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.files import aside_of, signed
from dpcml.utils.snapshots import present_folder

KIND, FORMAT = "dpcml shards", 1
MANIFEST, ITEMS = "manifest.json", "items.safetensors"
PARTS = ("train", "valid", "test")
LOW = "low_rated"  # known pairs that are no positives


def is_shards(folder: str | Path) -> bool:
    """Return whether a folder holds shards.

    Examples
    --------
    >>> is_shards("no such folder")
    False
    """
    place = Path(folder)
    return (place / MANIFEST).is_file() or (not place.exists() and (aside_of(place) / MANIFEST).is_file())


@dataclass(frozen=True)
class Shards:
    """Positives in a folder of shards, which `dpcml.scale.ingest` writes.

    Parameters
    ----------
    folder
        The folder.
    manifest
        What its manifest says.
    check
        Compare each file with its checksum when it is used first, which reads it once.
    """

    folder: Path
    manifest: dict[str, Any]
    check: bool = True
    _checked: dict[str, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, folder: str | Path, *, check: bool = True) -> Shards:
        """Return the shards of a folder; all files must be there.

        Parameters
        ----------
        folder
            Where they are.
        check
            Compare each file with its checksum when it is used first, which reads it once.
        """
        place = present_folder(folder)
        try:
            manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(
                f"{folder}: holds no shards, {MANIFEST} is missing; write them by 'dpcml data ingest'"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{place / MANIFEST}: cannot be read ({error}); ingest the data anew") from None
        if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
            raise DataError(f"{place / MANIFEST}: was not written by dpcml; name a folder of 'dpcml data ingest'")
        if manifest.get("format") != FORMAT:
            raise DataError(
                f"{folder}: shards of format {manifest.get('format')}, written by dpcml {manifest.get('version')}; this"
                f" version reads format {FORMAT}: ingest the data anew, or use that version"
            )
        if signed(manifest)["checksum"] != manifest.get("checksum"):
            raise DataError(f"{place / MANIFEST}: is damaged, its checksum differs; ingest the data anew")
        shards = cls(place, manifest, check)
        for name, said in manifest["files"].items():
            shards._check_size(name, said["bytes"])
        return shards

    def _check_size(self, name: str, expected: int) -> None:
        path = self.folder / name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: a shard is missing ({error.strerror}); copy it here, or ingest anew") from None
        if size != expected:
            raise DataError(f"{path}: is not the file that was written (its size differs); ingest anew")

    def _arrays(self, name: str) -> dict[str, Array]:
        """Return the arrays of a file, mapped. What is compared with the checksum is what is mapped."""
        path = self.folder / name
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                content = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns  # the same: was compared before
                if self.check and self._checked.get(name) != content:
                    if hashlib.file_digest(file, "sha256").hexdigest() != self.manifest["files"][name]["sha256"]:
                        raise DataError(
                            f"{path}: is not the file that was written (its checksum differs); ingest anew, or try"
                            " again if somebody ingests to this folder right now"
                        )
                    self._checked[name] = content
                return map_arrays(file)
        except OSError as error:
            raise DataError(f"{path}: a shard cannot be read ({error.strerror}); ingest anew") from None

    def __len__(self) -> int:
        return len(self.manifest["shards"])

    @property
    def n_users(self) -> int:
        """Users in all shards."""
        return int(self.manifest["users"])

    @cached_property
    def items(self) -> ItemTable:
        """The items, in the order of their ids."""
        return ItemTable(_ids(self._arrays(ITEMS), "item_ids"))

    def interactions(self, *parts: str, first: int = 0, last: int | None = None) -> Interactions:
        """Return the positives of some parts, all by default, of the users of the shards ``first`` to ``last``.

        A single part of a single shard stays mapped; anything else is copied into memory.

        Examples
        --------
        >>> import tempfile
        >>> import polars as pl
        >>> from dpcml.scale.ingestion import ingest
        >>> with tempfile.TemporaryDirectory() as place:
        ...     pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5]}).write_parquet(f"{place}/likes.parquet")
        ...     Shards.open(ingest([f"{place}/likes.parquet"], f"{place}/shards")).interactions()
        Interactions(2 users, 2 items, 3 positives)
        """
        entries = self.manifest["shards"][first:last]
        found = [self._arrays(entry["file"]) for entry in entries]
        wanted = parts or PARTS
        likes = [_merged([_csr(arrays, part) for part in wanted]) for arrays in found]
        indptr, indices = _stacked(likes)
        low = None
        if any(f"{LOW}.indptr" in arrays for arrays in found):
            ends, pairs = _stacked([_csr(arrays, LOW) for arrays in found])
            ones = np.ones(len(pairs), dtype=bool)
            low = sparse.csr_array((ones, pairs, ends), shape=(len(ends) - 1, len(self.items))) if len(pairs) else None
        ids = np.concatenate([_ids(arrays, "user_ids") for arrays in found])
        done = Preparation(**{**self.manifest["preparation"], "notes": tuple(self.manifest["preparation"]["notes"])})
        hashed = None if not parts else self.manifest["split"]["hash"]
        return Interactions(indptr, indices, ids, self.items, preparation=done, split_hash=hashed, low_rated=low)

    def split(self) -> Split:
        """Return the parts of all users, as the hash has split them."""
        return Split(tuple(self.interactions(part) for part in PARTS), self.manifest["split"]["rule"])


def encoded(name: str, ids: Array) -> dict[str, Array]:
    """Return ids as arrays for a file.

    Examples
    --------
    >>> {key: array.tolist() for key, array in encoded("ids", np.array(["ab", "c"], dtype=object)).items()}
    {'ids.bytes': [97, 98, 99], 'ids.ends': [2, 3]}
    """
    if ids.dtype.kind == "i":
        return {name: np.asarray(ids, dtype=np.int64)}
    words = [str(one).encode("utf-8", "surrogatepass") for one in ids.tolist()]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return {f"{name}.bytes": np.frombuffer(b"".join(words), np.uint8), f"{name}.ends": ends}


def _ids(arrays: dict[str, Array], name: str) -> Array:
    if name in arrays:
        return arrays[name]
    text, ends = arrays[f"{name}.bytes"].tobytes(), arrays[f"{name}.ends"].tolist()
    words = [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends[:-1]], ends, strict=False)]
    return np.array(words, dtype=object)


def _csr(arrays: dict[str, Array], part: str) -> tuple[IntArray, IntArray]:
    return arrays[f"{part}.indptr"], arrays[f"{part}.indices"]


def _merged(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return the union of disjoint CSRs of the same users."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([np.repeat(np.arange(len(ends) - 1), np.diff(ends)) for ends, _ in parts])
    columns = np.concatenate([indices for _, indices in parts])
    indptr = np.sum([ends for ends, _ in parts], axis=0)
    return indptr, columns[np.lexsort((columns, rows))]


def _stacked(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return the CSR of all users from those of consecutive ones."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(int(ends[-1]) for ends, _ in parts)])
    indptr = [ends[1:] + start for (ends, _), start in zip(parts, starts, strict=False)]
    return np.concatenate([[0], *indptr]), np.concatenate([indices for _, indices in parts])
