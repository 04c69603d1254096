"""Who is at work: the processes of one server know of each other by files in a folder that they share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


class Crew:
    """The processes of one server; each that takes requests has a file named by its number.

    Parameters
    ----------
    folder
        Where the files are; None for a server of one process.
    wanted
        How many processes there should be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     crew = Crew(Path(place), wanted=2)
    ...     crew.join()
    ...     print(crew.serving, crew.wanted)
    ...     crew.keep([])
    ...     print(crew.serving)
    1 2
    0
    """

    def __init__(self, folder: Path | None = None, wanted: int = 1) -> None:
        self._folder, self.wanted = folder, wanted

    def join(self, process: int | None = None) -> None:
        """Note that a process, this one by default, takes requests."""
        if self._folder is not None:
            self._file(process or os.getpid()).touch()

    def leave(self, process: int | None = None) -> None:
        """Note that a process, this one by default, takes no more requests."""
        if self._folder is not None:
            self._file(process or os.getpid()).unlink(missing_ok=True)

    def keep(self, alive: Iterable[int | None]) -> None:
        """Forget all processes but those that live: the dead cannot leave by themselves."""
        for process in set(self._noted()) - set(alive):
            self.leave(process)

    @property
    def serving(self) -> int:
        """How many processes take requests."""
        return 1 if self._folder is None else len(self._noted())

    def _file(self, process: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{process}.serving"

    def _noted(self) -> list[int]:
        return [] if self._folder is None else [int(file.stem) for file in self._folder.glob("*.serving")]
