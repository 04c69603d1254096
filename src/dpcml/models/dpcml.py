"""DPCML, and its relatives CML and GFJA: vectors in one metric space for users and items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.adaptive import MOST_VECTORS, RATES, adaptive_counts, best_rate
from dpcml.models.base import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.parameters import Removed, register
from dpcml.training.engine import TrainConfig
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import at_least, bounds, choice, positive

Bounds = tuple[float | None, float | None]


@register("dpcml")
@dataclass(eq=False, kw_only=True)
class DPCML(MultiInterest):
    """Diversity-Promoting Collaborative Metric Learning (Bao et al., 2022).

    A user has C vectors, an item one; the score of an item is minus its squared distance to the nearest of them. A
    hinge pulls positives closer than negatives by a margin, and a second one keeps half the mean squared distance of
    a user's vectors between two bounds (DCRS), so that they neither collapse nor scatter.

    Takes the parameters of `MultiInterest`, and:

    Parameters
    ----------
    n_vectors
        Vectors per user, C, or ``adaptive``: in proportion to the root of the user's number of positives. The factor is
        0.75, with at most 6 vectors, or up to four times as much, with at most 12, where the initial vectors rank the
        validation part better with more. Vectors that a user does not need repeat the first one.
    vector_rate
        The factor of ``adaptive``; None finds it on the validation part (0.75 without one).
    diversity
        Bounds (delta_1, delta_2); ``None`` leaves a bound out.
    diversity_weight
        Weight eta of the diversity hinge; 0 leaves it out. The hinge counts once per user in a batch, beside the sum
        of the hinges of the user's positives. Where all S candidates are negatives (``uniform``, ``popularity``), and a
        batch has one positive of a user, this is the paper's mean over candidates with a weight of eta / S.
    diversity_per
        ``user``: the hinge is on half the mean squared distance over pairs of different vectors, as in the paper's
        text; ``pair``: on half the squared distance of each such pair, then averaged. The released code is neither: it
        takes whole squared distances of all C^2 pairs, a vector with itself included, for all users in every step.
    projection
        User vectors stay on the unit ``sphere``, or in the unit ``ball``; item vectors stay in the ball.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
    >>> model.recommend(0, n=1)[0]
    array([4])
    >>> model.user_vectors_.shape, model.item_vectors_.shape
    ((12, 2, 8), (10, 8))
    """

    n_vectors: int | str = "adaptive"
    vector_rate: float | None = None
    margin: float | None = None
    pull: float = 0.5
    popularity: float | None = None
    average: float = 0.8
    init: str = "clusters"
    diversity: Bounds = (0.02, 0.15)
    diversity_weight: float = 10.0
    diversity_per: Literal["user", "pair"] = "user"
    projection: Literal["sphere", "ball"] = "sphere"

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Recommender:
        """Return a model with named settings, such as ``dpcml2``; all names are in `dpcml.models.presets.PRESETS`.

        Examples
        --------
        >>> DPCML.preset("dpcml2", epochs=5).n_candidates
        10
        """
        from dpcml.models.presets import PRESETS, create

        PRESETS[name]  # raises for an unknown preset; `create` takes names of models too
        return create(name, **changes)

    def _check(self) -> None:
        super()._check()
        if isinstance(self.n_vectors, str):
            choice("n_vectors", self.n_vectors, ("adaptive",))
        else:
            at_least("n_vectors", self.n_vectors, 1)
        if self.vector_rate is not None:
            positive("vector_rate", self.vector_rate)
        choice("projection", self.projection, ("sphere", "ball"))
        _check_diversity(self.diversity, self.diversity_weight, self.diversity_per)

    def _most_vectors(self) -> int:
        return MOST_VECTORS if self.n_vectors == "adaptive" else super()._most_vectors()

    def vector_counts(self, per_user: IntArray) -> IntArray:
        """Return how many vectors users get, from their numbers of positives.

        Examples
        --------
        >>> DPCML(n_vectors="adaptive").vector_counts(np.array([1, 10, 100, 1000])).tolist()
        [1, 2, 6, 6]
        """
        if self.n_vectors == "adaptive":
            rate = vars(self).get("vector_rate_", (self.vector_rate or RATES[0],))[0]
            return adaptive_counts(per_user, float(rate))
        return super().vector_counts(per_user)

    def _adapt(self, train: Interactions, valid: Interactions | None) -> None:
        if self.n_vectors == "adaptive":
            rate = self.vector_rate or RATES[0]
            if self.vector_rate is None and valid is not None and self.init == "clusters":
                rate = best_rate(train, valid, self.metric, self.n_threads)
            self.vector_rate_ = np.array([rate], dtype=np.float32)

    def _found_params(self) -> dict[str, Any]:
        rate = {"vector_rate": float(self.vector_rate_[0])} if self.n_vectors == "adaptive" else {}
        return super()._found_params() | rate

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return super()._shapes() | ({"vector_rate_": (1,)} if self.n_vectors == "adaptive" else {})

    def train_config(self, train: Interactions) -> TrainConfig:
        """Return what an epoch of training does on some data."""
        return replace(
            super().train_config(train),
            users_on_sphere=self.projection == "sphere",
            diversity=bounds("diversity", self.diversity),
            diversity_weight=self.diversity_weight,
            diversity_per_pair=self.diversity_per == "pair",
        )


@register("cml")
@dataclass(eq=False, kw_only=True)
class CML(MultiInterest):
    """Collaborative Metric Learning (Hsieh et al., 2017): one vector per user.

    Takes the parameters of `MultiInterest`, and:

    Parameters
    ----------
    projection
        User vectors stay on the unit ``sphere``, or in the unit ``ball``; item vectors stay in the ball.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> CML(dim=8, epochs=20, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    projection: Literal["sphere", "ball"] = "sphere"

    removed_params = {  # noqa: RUF012
        "n_vectors": Removed("CML has one vector per user; use DPCML for more", only=1),
        **dict.fromkeys(
            ("diversity", "diversity_weight", "diversity_per"), Removed("one vector per user has no diversity")
        ),
    }

    @property
    def n_vectors(self) -> int:
        """Vectors per user, always 1."""
        return 1

    def _check(self) -> None:
        super()._check()
        choice("projection", self.projection, ("sphere", "ball"))

    def train_config(self, train: Interactions) -> TrainConfig:
        """Return what an epoch of training does on some data."""
        return replace(super().train_config(train), users_on_sphere=self.projection == "sphere")


@register("gfja")
@dataclass(eq=False, kw_only=True)
class GFJA(MultiInterest):
    """General framework of joint accessibility: all vectors on the unit sphere, scored by the largest inner product.

    On the sphere a squared distance is 2 minus twice the inner product, so it trains like `DPCML` with twice the
    margin. Set ``diversity_weight`` for GFJA with DCRS; as the hinge of distances is twice that of inner products, this
    is the paper's objective with a weight of eta / 2.

    Takes the parameters of `MultiInterest`, and:

    Parameters
    ----------
    n_vectors, diversity, diversity_weight, diversity_per
        As for `DPCML`.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> model = GFJA(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
    >>> model.recommend(0, n=1)[0]
    array([4])
    >>> bool(np.allclose(np.linalg.norm(model.item_vectors_, axis=1), 1, atol=1e-5))
    True
    """

    n_vectors: int = 4
    diversity: Bounds = (0.02, 0.15)
    diversity_weight: float = 0.0
    diversity_per: Literal["user", "pair"] = "user"

    removed_params = {  # noqa: RUF012
        "projection": Removed("GFJA compares directions, all vectors are on the sphere", only="sphere")
    }

    def _check(self) -> None:
        super()._check()
        at_least("n_vectors", self.n_vectors, 1)
        _check_diversity(self.diversity, self.diversity_weight, self.diversity_per)

    def train_config(self, train: Interactions) -> TrainConfig:
        """Return what an epoch of training does on some data."""
        config = super().train_config(train)
        return replace(
            config,
            margin=2 * config.margin,
            items_on_sphere=True,
            diversity=bounds("diversity", self.diversity),
            diversity_weight=self.diversity_weight,
            diversity_per_pair=self.diversity_per == "pair",
        )

    def _from_distance(self, scores: FloatArray) -> FloatArray:
        """Return the largest inner products: on the sphere, 1 minus half the squared distance."""
        return 1 + scores / 2


def _check_diversity(diversity: Any, weight: Any, per: Any) -> None:
    bounds("diversity", diversity)
    positive("diversity_weight", weight, or_zero=True)
    choice("diversity_per", per, ("user", "pair"))
