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
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import ItemTable
from dpcml.data.split import Split
from dpcml.utils.arrays import Array, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.files import aside_of, signed
from dpcml.utils.saved_files import map_arrays, present_folder

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
    try:
        return (place / MANIFEST).is_file() or (not place.exists() and (aside_of(place) / MANIFEST).is_file())
    except OSError:  # a name that is too long; who opens it as a file says so
        return False


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

    @cached_property
    def user_ids(self) -> Array:
        """Ids of all users."""
        return self._user_ids(0, self.n_users)

    def _user_ids(self, first: int, last: int) -> Array:
        ids = [np.array(_ids(arrays, "user_ids")[a:b]) for arrays, a, b in self._mapped(first, last)]
        return np.concatenate(ids)

    def interactions(self, *parts: str, first: int = 0, last: int | None = None) -> Interactions:
        """Return the positives of some parts, all by default, of the users ``first`` to ``last``, the latter excluded.

        Positives of all users are in a file without a name that is mapped: memory that the system can take back.

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
        end = self.n_users if last is None else last
        whole, wanted = (first, end) == (0, self.n_users), parts or PARTS

        def stacked(*names: str) -> tuple[IntArray, IntArray]:
            each = self._mapped(first, end)
            return _stacked(
                (_merged([_csr(arrays, name, a, b) for name in names]) for arrays, a, b in each),
                self.folder if whole else None,
            )

        indptr, indices = stacked(*wanted)
        ends, pairs = stacked(LOW)
        low = None
        if len(pairs):
            ones = np.ones(len(pairs), dtype=bool)
            low = sparse.csr_array((ones, pairs, ends), shape=(len(ends) - 1, len(self.items)))
        ids = self.user_ids if whole else self._user_ids(first, end)
        done = Preparation(**{**self.manifest["preparation"], "notes": tuple(self.manifest["preparation"]["notes"])})
        hashed = None if not parts else self.manifest["split"]["hash"]
        found = StoredInteractions(indptr, indices, ids, self.items, preparation=done, split_hash=hashed, low_rated=low)
        place = Place(str(self.folder.absolute()), self.manifest["split"]["hash"], parts, first, end)
        object.__setattr__(found, "place", place)
        return found

    def _mapped(self, first: int, last: int) -> Iterator[tuple[dict[str, Array], int, int]]:
        """Yield the arrays of each shard that has some of the users, and which of its rows they are.

        One file at a time is open: there may be more shards than a process may open.
        """
        begin = 0
        for entry in self.manifest["shards"]:
            end = begin + entry["users"]
            if first < end and last > begin:
                yield self._arrays(entry["file"]), max(first - begin, 0), min(last, end) - begin
            begin = end

    def split(self) -> Split:
        """Return the parts of all users, as the hash has split them."""
        return Split(tuple(self.interactions(part) for part in PARTS), self.manifest["split"]["rule"])


@dataclass(frozen=True)
class Place:
    """Where positives of some users are: what another process gets in place of them."""

    folder: str
    split_hash: str
    parts: tuple[str, ...]
    first: int
    last: int

    def read(self) -> Interactions:
        """Return the positives."""
        shards = Shards.open(self.folder)
        if shards.manifest["split"]["hash"] != self.split_hash:
            raise DataError(
                f"{self.folder}: holds other shards than where the command runs; all machines must see the same"
            )
        return shards.interactions(*self.parts, first=self.first, last=self.last)


class StoredInteractions(Interactions):
    """Positives of users in a folder of shards, which know their place."""

    place: Place | None = None  # None for positives that were changed since

    def users_between(self, first: int, last: int) -> Interactions:
        """Return the rows ``first`` to ``last``, the latter not included, over all items."""
        found = super().users_between(first, last)
        if self.place is not None:
            begin = self.place.first
            object.__setattr__(found, "place", replace(self.place, first=begin + first, last=begin + last))
        return found


def to_send(data: Interactions | None) -> Interactions | Place | None:
    """Return what to send to a process that needs the data: their place if they are in shards."""
    place = data.place if isinstance(data, StoredInteractions) else None
    return data if place is None else place


def received(sent: Interactions | Place | None) -> Interactions | None:
    """Return the data that `to_send` was given."""
    return sent.read() if isinstance(sent, Place) else sent


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


def _csr(arrays: dict[str, Array], part: str, first: int, last: int) -> tuple[IntArray, IntArray]:
    ends = arrays[f"{part}.indptr"][first : last + 1]
    return ends - ends[0], arrays[f"{part}.indices"][ends[0] : ends[-1]]


def _merged(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return the union of disjoint CSRs of the same users."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([np.repeat(np.arange(len(ends) - 1), np.diff(ends)) for ends, _ in parts])
    columns = np.concatenate([indices for _, indices in parts])
    indptr = np.sum([ends for ends, _ in parts], axis=0)
    return indptr, columns[np.lexsort((columns, rows))]


def _stacked(parts: Iterator[tuple[IntArray, IntArray]], folder: Path | None) -> tuple[IntArray, IntArray]:
    """Return the CSR of all users from those of consecutive ones, its positions in memory or in a file of a folder."""
    ends: list[IntArray] = [np.zeros(1, dtype=np.int64)]
    found, total = list[IntArray](), 0
    with ExitStack() as stack:
        file = None if folder is None else stack.enter_context(_unnamed(folder))
        for indptr, indices in parts:
            ends.append(indptr[1:] + total)
            total += len(indices)
            if file is None:
                found.append(np.array(indices))
                continue
            try:
                file.write(np.ascontiguousarray(indices).data)
                file.flush()
            except OSError as error:
                raise DataError(
                    f"{folder}: no room for {4 * total:,} bytes while the shards are read ({error.strerror}); make some"
                ) from None
        if file is not None and total:
            found.append(np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.int32))
    return np.concatenate(ends), found[0] if len(found) == 1 else np.concatenate([np.zeros(0, dtype=np.int32), *found])


def _unnamed(folder: Path) -> IO[bytes]:
    """Return a file that is gone when nobody has it open, on the disk of the shards if it can be written to."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()
