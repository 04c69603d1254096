"""What all models that are trained in epochs share: their common parameters, validation, early stopping."""

from __future__ import annotations

from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.evaluation.ranks import Scorer, check_held_out
from dpcml.models.base import Recommender
from dpcml.training.history import History
from dpcml.training.loop import LoopSettings, Trainable, train
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError
from dpcml.utils.threads import thread_count


class InEpochs(Recommender):
    """A model that learns epoch by epoch; a subclass is a dataclass with at least the fields named here.

    With a validation part it is looked at every ``validate_every`` epochs, and the best state is kept.
    """

    epochs: int
    validate_every: int
    patience: int | None
    metric: str
    random_state: int
    n_threads: int | None = None

    def _check(self) -> None:
        for field in ("epochs", "validate_every"):
            at_least(field, getattr(self, field), 1)
        if self.patience is not None:
            at_least("patience", self.patience, 1)
        at_least("random_state", self.random_state, 0)
        thread_count(self.n_threads)
        metric_cutoff(self.metric)

    def _train(
        self,
        learner: Trainable,
        scorer: Scorer,
        train_data: Interactions,
        valid: Interactions | None,
        *,
        rate: float,
        schedule: str = "constant",
        **options: Any,
    ) -> None:
        """Train a learner and keep the history; ``scorer`` scores it in between, further options are the loop's."""
        if valid is not None:  # now, not when it is needed first
            check_held_out(train_data, valid)
            if not valid.n_positives:
                raise DataError("no user has a validation positive: there is nothing to choose by")
        self.history_: History = train(
            learner,
            LoopSettings(self.epochs, rate, schedule, self.validate_every, self.patience),
            validate=None
            if valid is None
            else lambda: validation(scorer, train_data, valid, self.metric, n_threads=self.n_threads),
            metric=self.metric,
            **options,
        )
