"""MLP: layers on a user's and an item's vector side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dpcml.models.neural.backend import look_up
from dpcml.models.neural.network import Network, Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


@register("mlp")
@dataclass(eq=False)
class MLP(Network):
    """Multi-layer perceptron on vectors of users and items (He et al., 2017, "Neural Collaborative Filtering").

    ``z_1 = relu(W_1 [p_u; q_i] + c_1)``, ``z_k = relu(W_k z_{k-1} + c_k)``; the chance that user u likes item i is
    ``sigmoid(h . z_L + b_i)``, trained with binary cross-entropy on positives and sampled negatives. The first layer is
    taken apart, ``W_1 [p; q] = A p + B q``, so that it costs one product per user and per item, not per pair. The bias
    b_i of an item is ours.

    Takes the parameters of `Network`, and:

    Parameters
    ----------
    layers
        Widths of the hidden layers, from the first to the last.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> MLP(dim=8, layers=(16, 8), n_candidates=3, learning_rate=0.01).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    layers: tuple[int, ...] = (64, 32, 16)

    def _check(self) -> None:
        super()._check()
        check_layers(self.layers)

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        return {
            **tower_tables(n_users, n_items, self.dim, self.layers),
            "output_weights_": Table((self.layers[-1],), self.layers[-1] ** -0.5),
            "item_biases_": Table((n_items, 1)),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        scores: Tensor = tower(p, users, items) @ p["output_weights_"] + look_up(p["item_biases_"], items)[..., 0]
        return scores

    def _floats_per_user(self, n_items: int) -> int:
        return n_items * tower_floats(self.layers)


def check_layers(layers: Any) -> None:
    """Reject what is not a sequence of widths.

    Examples
    --------
    >>> check_layers(())
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: layers=(): pass the width of each hidden layer, such as (64, 32)
    """
    if not isinstance(layers, (tuple, list)) or not layers:
        raise ParameterError(f"layers={layers!r}: pass the width of each hidden layer, such as (64, 32)")
    for width in layers:
        at_least("layers", width, 1)


def tower_tables(n_users: int, n_items: int, dim: int, layers: tuple[int, ...], prefix: str = "") -> dict[str, Table]:
    """Return the tables of a tower; weights start as for layers of rectified units (He et al., 2015)."""
    tables = {
        f"{prefix}user_vectors_": Table((n_users, dim), 0.1),
        f"{prefix}item_vectors_": Table((n_items, dim), 0.1),
        f"{prefix}layer_1_users_": Table((dim, layers[0]), dim**-0.5),
        f"{prefix}layer_1_items_": Table((dim, layers[0]), dim**-0.5),
        f"{prefix}layer_1_biases_": Table((layers[0],)),
    }
    for k, (width, after) in enumerate(pairwise(layers), start=2):
        tables[f"{prefix}layer_{k}_weights_"] = Table((width, after), (2 / width) ** 0.5)
        tables[f"{prefix}layer_{k}_biases_"] = Table((after,))
    return tables


def tower(p: Tensors, users: Tensor, items: Tensor, prefix: str = "") -> Tensor:
    """Return the last layer for users (B,) and items (B or 1, K); shape (B, K, width)."""
    table, weights = p[f"{prefix}item_vectors_"], p[f"{prefix}layer_1_items_"]
    first_product = items.numel() > len(table)  # then there are fewer products than pairs
    of_items = look_up(table @ weights, items) if first_product else look_up(table, items) @ weights
    of_users = (look_up(p[f"{prefix}user_vectors_"], users) @ p[f"{prefix}layer_1_users_"])[:, None, :]
    layer: Tensor = (of_users + of_items + p[f"{prefix}layer_1_biases_"]).relu()
    k = 2
    while f"{prefix}layer_{k}_weights_" in p:
        layer = (layer @ p[f"{prefix}layer_{k}_weights_"] + p[f"{prefix}layer_{k}_biases_"]).relu()
        k += 1
    return layer


def tower_floats(layers: tuple[int, ...]) -> int:
    """Return how many numbers per pair a tower holds at once: a layer before and after it is rectified, and the next.

    Examples
    --------
    >>> tower_floats((64, 32))
    160
    """
    return max(2 * width + after for width, after in pairwise((*layers, 1)))
