"""GFJA: several vectors per user on the sphere, compared by inner products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpcml.models.dpcml import DPCML
from dpcml.models.parameters import register
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import ParameterError


@register("gfja")
@dataclass(eq=False)
class GFJA(DPCML):
    """General framework of joint accessibility: all vectors on the unit sphere, scored by the largest inner product.

    On the sphere a squared distance is 2 minus twice the inner product, so it trains like `DPCML` with twice the
    margin. ``diversity_weight`` is 0 by default; set it for GFJA with DCRS.

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

    diversity_weight: float = 0.0

    items_on_sphere: ClassVar[bool] = True

    def _check(self) -> None:
        super()._check()
        if self.projection != "sphere":
            raise ParameterError(
                f"projection={self.projection!r}: GFJA compares directions, all vectors are on the sphere"
            )

    def distance_margin(self) -> float:
        """Return the margin in squared distances: twice that of inner products on the sphere."""
        return 2 * self.margin

    def _from_distance(self, scores: FloatArray) -> FloatArray:
        """Return the largest inner products: on the sphere, 1 minus half the squared distance."""
        return 1 + scores / 2
