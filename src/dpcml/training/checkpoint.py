"""Checkpoints: the whole state of a training run in one file, which is replaced atomically."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dpcml.utils.arrays import Array
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import atomic
from dpcml.utils.packages import version

FILE = "checkpoint.safetensors"
FORMAT = 3


P = ParamSpec("P")
R = TypeVar("R")


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

    def due(self, epoch: int) -> bool:
        """Return whether a checkpoint is due after this epoch."""
        late = time.monotonic() - self._written >= 60 * self.settings.every_minutes
        return late or epoch - self._epoch >= self.settings.every_epochs

    def write(self, epoch: int, arrays: Mapping[str, Array], progress: Mapping[str, Any]) -> None:
        """Replace the checkpoint."""
        about = {"format": FORMAT, "version": version(), "identity": self.identity, "epoch": epoch, **progress}
        metadata = {"dpcml": json.dumps(about, default=str)}
        try:
            with atomic(self.path) as temporary:
                save_file(dict(arrays), temporary, metadata=metadata)
        except SafetensorError as error:  # the disk is full, mostly
            raise DataError(f"{self.path}: cannot be written ({error}); the checkpoint before, if any, stays") from None
        self._written, self._epoch = time.monotonic(), epoch

    def read(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the metadata."""
        try:
            with safe_open(self.path, framework="numpy") as file:
                about = json.loads((file.metadata() or {})["dpcml"])
                if about["format"] != FORMAT:
                    way = "newer than this; update dpcml" if about["format"] > FORMAT else "older than this; train anew"
                    raise DataError(f"{self.path}: written by dpcml {about['version']}, {way} to go on")
                identity, self._epoch = about["identity"], about["epoch"]
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        except FileNotFoundError:
            raise DataError(f"{self.path}: no checkpoint here; train without resume first") from None
        except DataError:
            raise
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.path}: damaged checkpoint ({error}); remove it and train anew") from None
        self._check(identity)
        return arrays, about

    def _check(self, found: Mapping[str, Any]) -> None:
        expected = json.loads(json.dumps(self.identity, default=str))
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                raise ParameterError(
                    f"{self.path}: the checkpoint is of a run with {name}={found.get(name)!r}, this one has"
                    f" {expected.get(name)!r}; use the same settings and data, or another folder"
                )


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
