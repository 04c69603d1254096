"""Checkpoints: the whole state of a training run in one file, with a checksum; the one before it is kept."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dpcml.utils.arrays import Array
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import DataError, DpcmlError, ParameterError, RecoveryWarning
from dpcml.utils.files import atomic
from dpcml.utils.packages import version

FILE, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
FORMAT = 4  # 3 had no checksum

P = ParamSpec("P")
R = TypeVar("R")


class DamagedCheckpointError(DataError):
    """A checkpoint that is not what was written."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a training run writes its checkpoint.

    Parameters
    ----------
    folder
        Folder of the checkpoint.
    every_epochs, every_minutes
        Write after this many epochs, or when this much time has passed, whichever comes first.

    Examples
    --------
    >>> Checkpoint("run", every_epochs=5).every_minutes
    5.0
    """

    folder: str | Path
    every_epochs: int = 10
    every_minutes: float = 5.0

    def __post_init__(self) -> None:
        at_least("every_epochs", self.every_epochs, 1)
        positive("every_minutes", self.every_minutes, or_zero=True)


@dataclass
class Checkpointer:
    """Writes and reads the checkpoint of one run.

    Parameters
    ----------
    settings
        Where, and how often.
    identity
        What the run is: model, parameters, data. A checkpoint of another run is refused.
    """

    settings: Checkpoint
    identity: Mapping[str, Any]
    _written: float = field(default_factory=time.monotonic, repr=False)
    _epoch: int = field(default=0, repr=False)

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.settings.folder) / FILE

    @property
    def previous(self) -> Path:
        """The file with the checkpoint before the last one."""
        return Path(self.settings.folder) / PREVIOUS

    def exists(self) -> bool:
        """Return whether there is a checkpoint, sound or not."""
        return self.path.exists() or self.previous.exists()

    def due(self, epoch: int) -> bool:
        """Return whether a checkpoint is due after this epoch."""
        late = time.monotonic() - self._written >= 60 * self.settings.every_minutes
        return late or epoch - self._epoch >= self.settings.every_epochs

    def write(self, epoch: int, arrays: Mapping[str, Array], progress: Mapping[str, Any]) -> None:
        """Replace the checkpoint, and keep the one that it replaces."""
        about = {"format": FORMAT, "version": version(), "identity": self.identity, "epoch": epoch, **progress}
        text = json.dumps(about, default=str)
        try:
            with atomic(self.path) as temporary:
                save_file(dict(arrays), temporary, metadata={"dpcml": text, "sha256": _checksum(arrays, text)})
                self._keep_previous()
        except DataError as error:  # the disk is full, mostly
            raise DataError(f"{error}; the checkpoint before, if any, stays") from None
        self._written, self._epoch = time.monotonic(), epoch

    def _keep_previous(self) -> None:
        """Give the current file a second name, so that at every moment there is a checkpoint under the first one."""
        spare = self.path.with_name(f".{self.path.stem}-previous{self.path.suffix}")
        spare.unlink(missing_ok=True)
        with suppress(FileNotFoundError):  # this is the first one
            try:
                os.link(self.path, spare)
            except OSError:  # the file system has no links: for a moment there is only the previous checkpoint
                self.path.replace(self.previous)
            else:
                spare.replace(self.previous)

    def read(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the metadata of the last checkpoint, or of the one before if the last is damaged."""
        if not self.exists():
            raise DataError(f"{self.path}: no checkpoint here; train without resume first")
        try:
            return self._read(self.path)
        except DamagedCheckpointError as error:
            try:
                found = self._read(self.previous)
            except DpcmlError:  # neither is any good, or the previous one is of another run
                raise error from None
            text = f"{error}; going on from the one before, of epoch {found[1]['epoch']}"
            warnings.warn(text, RecoveryWarning, stacklevel=2)
            return found

    def _read(self, path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                about = json.loads(metadata["dpcml"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
                known = metadata["sha256"] if about["format"] == FORMAT else metadata.get("sha256")
                if known not in (None, _checksum(arrays, metadata["dpcml"])):
                    raise ValueError("its checksum is not that of the file that was written")
                if about["format"] != FORMAT:
                    way = "newer than this; update dpcml" if about["format"] > FORMAT else "older than this; train anew"
                    raise DataError(f"{path}: written by dpcml {about['version']}, {way} to go on")
                identity, epoch = about["identity"], about["epoch"]
        except DataError:
            raise
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            text = f"{path}: damaged checkpoint ({error}); remove it and train anew"
            raise DamagedCheckpointError(text) from None
        self._check(identity)
        self._epoch = epoch
        return arrays, about

    def _check(self, found: Mapping[str, Any]) -> None:
        expected = json.loads(json.dumps(self.identity, default=str))
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                raise ParameterError(
                    f"{self.path}: the checkpoint is of a run with {name}={found.get(name)!r}, this one has"
                    f" {expected.get(name)!r}; use the same settings and data, or another folder"
                )


def _checksum(arrays: Mapping[str, Array], text: str) -> str:
    """Return the SHA-256 of metadata and arrays: names, types, shapes and bytes."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"|{name} {array.dtype.str} {array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def with_old_keywords(fit: Callable[P, R]) -> Callable[P, R]:
    """Let ``fit`` take the keywords ``checkpoint_every`` and ``checkpoint_minutes`` for one more version."""
    names = {"checkpoint_every": "every_epochs", "checkpoint_minutes": "every_minutes"}

    @wraps(fit)
    def call(*args: P.args, **given: P.kwargs) -> R:
        old: dict[str, Any] = {new: given.pop(name) for name, new in names.items() if name in given}
        if old:
            text = f"fit: pass checkpoint=Checkpoint(folder, {', '.join(old)}=...); the old keywords go soon"
            warnings.warn(text, FutureWarning, stacklevel=2)
            folder: Any = given.get("checkpoint")
            if folder is not None:
                given["checkpoint"] = Checkpoint(folder, **old)
        return fit(*args, **given)

    return call
