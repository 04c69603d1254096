"""`NeuralRecommender`: models trained with PyTorch, with learned tables, a score of pairs and a loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.mining import CLOSEST
from dpcml.models.base import Recommender
from dpcml.models.neural.backend import available, check_device_name, hardest, load_torch, tensor, torch_threads
from dpcml.models.neural.learner import Tensors, TorchLearner
from dpcml.models.neural.space import FreeSpace
from dpcml.training.samplers import SAMPLERS, BatchSampler, check_negatives
from dpcml.training.trainer import FitOptions, Trainer
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, choice, positive

if TYPE_CHECKING:
    from torch import Tensor

TEMPORARY_BYTES = 16 * 2**20  # temporary memory of scoring; more is slower
NEGATIVES = ("uniform", "popularity", "hard")


class ParameterTable(NamedTuple):
    """A learned array with normally distributed initial values."""

    shape: tuple[int, ...]
    deviation: float = 0.0
    centre: float = 0.0

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Return initial values.

        Examples
        --------
        >>> ParameterTable((2, 2), centre=1.0).drawn(np.random.default_rng(0)).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        """
        values = rng.standard_normal(self.shape, dtype=np.float32)
        return values * np.float32(self.deviation) + np.float32(self.centre)


@dataclass(eq=False)
class NeuralRecommender(Recommender):
    """A model that is trained with PyTorch.

    A subclass names its learned tables (``_tables``) and scores pairs (``_score``). It may have another ``space``, a
    loss of its own (`loss`), and tensors computed from the training data (``_known``). Tensors are passed by name:
    ``p["item_vectors_"]``.

    Parameters
    ----------
    dim
        Dimension of the vectors, d.
    negatives
        ``uniform`` or ``popularity`` (all candidates are used), or ``hard`` (of uniform candidates the one that the
        model scores highest).
    n_candidates
        Candidates per positive, S.
    learning_rate, schedule
        Rate of Adam, and how it falls: ``constant``, ``linear``, ``cosine``.
    regularisation
        Weight decay: share by which all vectors shrink per step, times the learning rate.
    batch_size
        Positives per step; by default a 64th of all, from 16 to 2048 (AdaCML: 1024, HLR: 512).
    epochs
        Passes over all positives.
    validate_every, patience, metric
        With a validation part: evaluate ``metric`` (released protocol) every ``validate_every`` epochs, stop after
        ``patience`` evaluations without improvement (None: never), and keep the best state.
    stop_after
        End the training after this epoch; the schedule stays that of ``epochs``. `settled` sets it.
    device
        ``cpu``, ``cuda``, or ``cuda:1``; a fitted model scores on the CPU.
    random_state
        Seed: the same seed gives the same result on the same machine with the same number of threads.
    n_threads
        Threads; all cores by default.
    """

    dim: int = 64
    negatives: str = "uniform"
    n_candidates: int = 10
    learning_rate: float = 0.003
    schedule: str = "linear"
    regularisation: float = 1.0
    batch_size: int | None = None
    epochs: int = 50
    validate_every: int = 5
    patience: int | None = 3
    metric: str = "P@3"
    device: str = "cpu"
    random_state: int = 0
    n_threads: int | None = None
    stop_after: int | None = None

    iterative = True
    space: ClassVar[FreeSpace] = FreeSpace()
    largest_batch: ClassVar[int] = 2048  # larger steps do not fit in the cache

    def _check(self) -> None:
        Trainer.from_params(self.get_params())
        at_least("random_state", self.random_state, 0)
        for field in ("dim", "n_candidates"):
            at_least(field, getattr(self, field), 1)
        if self.batch_size is not None:
            at_least("batch_size", self.batch_size, 1)
        positive("regularisation", self.regularisation, or_zero=True)
        choice("negatives", self.negatives, NEGATIVES)
        check_device_name(self.device)
        self.space.check(self)

    @abstractmethod
    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        """Return the learned tables by the name of the fitted attribute."""

    @abstractmethod
    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return scores of shape (B, K) for users (B,) and items (B, K), or (1, K) where all have the same."""

    def _initial(self, train: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Return initial values of all tables."""
        vectors = self.space.initial(self, train, rng)
        tables = self._tables(train.n_users, train.n_items)
        return {name: table.drawn(rng) for name, table in tables.items()} | vectors

    def _known(self, train: Interactions, device: str) -> dict[str, Any]:
        """Return tensors that are computed from the training data and not learned."""
        return {}

    def _training_score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return scores (B, K) in training, where column 0 of ``items`` holds the positives."""
        return self._score(p, users, items)

    def loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return the mean loss of a batch; column 0 of ``items`` holds the positives.

        Of hard negatives, candidates are scored without a gradient, and those with one alone again: the positive and
        the hardest negative, where the loss is not flat.
        """
        if SAMPLERS[self.negatives].choice != CLOSEST:
            return self.space.loss(self, self._training_score(p, users, items))
        torch = load_torch()
        with torch.no_grad():
            scores = self._training_score(p, users, items)
            best, place = scores[:, 1:].max(1)
            steep = self.space.steep(self, scores[:, 0], best).nonzero()[:, 0]
            if not len(steep):
                steep = steep.new_zeros(1)  # a loss of 0 that has a gradient, of zeros
            pairs = torch.stack([items[steep, 0], items[steep, 1 + place[steep]]], dim=1)
        return self.space.loss(self, self._training_score(p, users[steep], pairs)) * (len(steep) / len(users))

    def _chosen(self, scores: Tensor) -> Tensor:
        """Return the scores of the positive and of the negatives that are used."""
        return hardest(scores) if SAMPLERS[self.negatives].choice == CLOSEST else scores

    def project(self, p: Tensors) -> None:
        """Bring vectors back into the space, in place, after a step."""
        self.space.project(p)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return self.space.similarity(self, columns)

    @abstractmethod
    def _floats_per_user(self, n_items: int) -> int:
        """Return how many floats ``_score`` allocates for all items of one user."""

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        check_negatives(train)
        with torch_threads(self.n_threads):
            learner = self._learner(train)
            trainer = Trainer.from_params(self.get_params())
            scorer = LearnerScorer(self, learner)
            self.history_ = trainer.fit(learner, scorer, train, valid, options, self.identity())
        state = learner.state()
        for name in learner.learned():
            setattr(self, name, state[name].copy())
        vars(self).pop("_ready", None)

    def _learner(self, train: Interactions) -> TorchLearner:
        device = available(self.device)
        size = self.batch_size or int(np.clip(train.n_positives // 64, 16, self.largest_batch))
        return TorchLearner(
            self,
            self._initial(train, np.random.default_rng(self.random_state)),
            self._known(train, device),
            BatchSampler(train, SAMPLERS[self.negatives], self.n_candidates, size, self.random_state),
            regularisation=self.regularisation,
            device=device,
        )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        train = self.check_fitted()
        return {name: table.shape for name, table in self._tables(train.n_users, train.n_items).items()}

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        super()._set_arrays(arrays)
        vars(self).pop("_ready", None)

    def _loaded(self) -> Tensors:
        """Return tensors of the fitted arrays, made at first use."""
        if "_ready" not in vars(self):
            learned = {name: tensor(values) for name, values in self.to_arrays().items()}
            self._ready = {**self._known(self.check_fitted(), "cpu"), **learned}
        return self._ready

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item for some users; shape (users, items)."""
        rows = self._rows(users)
        with torch_threads(self.n_threads):
            return self._blocks(self._loaded(), rows, self.check_fitted().n_items, "cpu")

    def _blocks(self, p: Tensors, rows: IntArray, n_items: int, device: str) -> FloatArray:
        """Score some users and items at a time, so that temporaries stay below `TEMPORARY_BYTES`."""
        torch = load_torch()
        scores = np.empty((len(rows), n_items), dtype=np.float32)
        floats = TEMPORARY_BYTES // 4
        width = max(1, n_items * floats // max(self._floats_per_user(n_items), floats))
        height = max(1, floats // self._floats_per_user(width))
        items = torch.arange(n_items, device=device)[None].split(width, dim=1)
        with torch.no_grad():
            for first in range(0, len(rows), height):
                some = torch.from_numpy(rows[first : first + height].astype(np.int64)).to(device)
                for k, part in enumerate(items):
                    block = slice(first, first + height), slice(k * width, (k + 1) * width)
                    scores[block] = self._score(p, some, part).cpu().numpy()
        return scores


def ball_tables(n_users: int, n_items: int, dim: int) -> dict[str, ParameterTable]:
    """Return the tables of the vectors of users and items in `UnitBall`, which draws them itself."""
    return {"user_vectors_": ParameterTable((n_users, dim)), "item_vectors_": ParameterTable((n_items, dim))}


@dataclass(frozen=True)
class LearnerScorer:
    """Scores of a learner in the middle of training."""

    model: NeuralRecommender
    learner: TorchLearner

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        learner = self.learner
        return self.model._blocks(learner.tensors, users, learner.n_items, learner.device)
