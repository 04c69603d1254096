"""Models that our own loop trains: options of ``fit``, checkpoints, progress."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.ranks import Scorer
from dpcml.models.epochs import InEpochs
from dpcml.training.checkpoint import Checkpointer
from dpcml.training.loop import SCHEDULES, Callback, Trainable
from dpcml.training.progress import Progress
from dpcml.utils.checks import choice, positive
from dpcml.utils.errors import DataError, ParameterError


class Learner(Trainable, Protocol):
    """What is trained: the loop's `Trainable`, with compiled parts."""

    def compile(self) -> None:
        """Compile kernels, or load them from the cache on disk."""


L = TypeVar("L", bound=Learner)


class Trained(InEpochs, Generic[L]):
    """A model that learns epoch by epoch, and can be cut off and resumed.

    A subclass is a dataclass with at least the fields named here; it makes a `Learner` of training data (``_learner``),
    says how one scores in the middle of training (``_scorer``), and takes over what it has learned (``_keep``).
    """

    learning_rate: float
    schedule: str

    @abstractmethod
    def _learner(self, train_data: Interactions) -> L:
        """Return what is to be trained, at its start."""

    @abstractmethod
    def _scorer(self, learner: L) -> Scorer:
        """Return the scores of a learner in the middle of training."""

    @abstractmethod
    def _keep(self, learner: L) -> None:
        """Take over what was learned."""

    def _check(self) -> None:
        super()._check()
        positive("learning_rate", self.learning_rate)
        choice("schedule", self.schedule, tuple(SCHEDULES))

    def fit(  # type: ignore[override]
        self,
        train: Any,
        valid: Any = None,
        *,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        checkpoint_every: int = 10,
        checkpoint_minutes: float = 5.0,
        callbacks: Sequence[Callback] = (),
        progress: bool | None = None,
    ) -> Self:
        """Learn from positives.

        Parameters
        ----------
        train
            `Interactions`, a scipy matrix of shape (users, items), or a frame with user and item columns.
        valid
            Held-out positives over the same users and items: training keeps the state that is best on them.
        checkpoint
            Folder in which the state of the run is kept, after every ``checkpoint_every`` epochs or
            ``checkpoint_minutes`` minutes; Ctrl-C then ends the running epoch and leaves a checkpoint.
        resume
            Go on from the checkpoint, if there is one: ends with the same bits as a run without a break.
        callbacks
            Called with the `History` after every epoch; a true result ends the training.
        progress
            Show a progress bar on standard error; by default where that is a terminal.
        """
        options = {"checkpoint": checkpoint, "resume": resume, "callbacks": callbacks, "progress": progress}
        every = {"checkpoint_every": checkpoint_every, "checkpoint_minutes": checkpoint_minutes}
        return super().fit(train, valid, **options, **every)

    def _fit(self, train_data: Interactions, valid: Interactions | None, **options: Any) -> None:
        check_negatives(train_data)
        checkpointer = self._checkpointer(train_data, valid, options)
        learner = self._learner(train_data)
        progress = Progress(self.epochs, positives=train_data.n_positives, shown=options["progress"])
        with progress.slow_step("compiling kernels, once"):
            learner.compile()
        self._train(
            learner,
            self._scorer(learner),
            train_data,
            valid,
            rate=self.learning_rate,
            schedule=self.schedule,
            checkpointer=checkpointer,
            resume=options["resume"],
            callbacks=options["callbacks"],
            progress=progress,
        )
        self._keep(learner)

    def _checkpointer(
        self, train_data: Interactions, valid: Interactions | None, options: dict[str, Any]
    ) -> Checkpointer | None:
        folder = options["checkpoint"]
        if folder is None:
            if options["resume"]:
                raise ParameterError("resume=True: name the folder of the checkpoint too")
            return None
        identity = {**self.get_params(), "model": self.name, "data": train_data.content_hash, "n_threads": None}
        identity["valid"] = None if valid is None else valid.content_hash
        return Checkpointer(Path(folder), identity, options["checkpoint_every"], options["checkpoint_minutes"])


def check_negatives(train_data: Interactions) -> None:
    """Reject data on which no negative can be drawn for somebody.

    Examples
    --------
    >>> check_negatives(Interactions.from_csr(np.ones((1, 2))))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: user 0 likes all 2 items: there is no negative to learn from; drop the user
    """
    full = np.flatnonzero(train_data.per_user == train_data.n_items)
    if len(full):
        user = train_data.user_ids[full[0]]
        raise DataError(
            f"user {user} likes all {train_data.n_items} items: there is no negative to learn from; drop the user"
        )
