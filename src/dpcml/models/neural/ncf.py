"""Neural collaborative filtering (He et al., 2017): GMF, MLP, and NeuMF, which joins both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import inner, look_up
from dpcml.models.neural.base import NeuralRecommender, ParameterTable
from dpcml.models.neural.learner import Tensors
from dpcml.models.parameters import register
from dpcml.utils.arrays import FloatArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


@register("gmf")
@dataclass(eq=False)
class GMF(NeuralRecommender):
    """Generalised matrix factorisation (He et al., 2017, "Neural Collaborative Filtering").

    The chance that user u likes item i is ``sigmoid(h . (p_u * q_i) + b_i)`` with learned weights h of the dimensions;
    positives should have 1, sampled negatives 0 (binary cross-entropy). The bias b_i of an item is ours: it leaves the
    vectors to what is not popularity. Takes the parameters of `NeuralRecommender`.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> GMF(dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return {
            "user_vectors_": ParameterTable((n_users, self.dim), 0.1),
            "item_vectors_": ParameterTable((n_items, self.dim), 0.1),
            "weights_": ParameterTable((self.dim,), 0.0, 1.0),
            "item_biases_": ParameterTable((n_items, 1)),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        weighted = look_up(p["user_vectors_"], users) * p["weights_"]  # (B, d)
        return inner(weighted, look_up(p["item_vectors_"], items)) + look_up(p["item_biases_"], items)[..., 0]

    def _floats_per_user(self, n_items: int) -> int:
        return 2 * n_items + self.dim


@register("mlp")
@dataclass(eq=False)
class MLP(NeuralRecommender):
    """Multi-layer perceptron on vectors of users and items (He et al., 2017, "Neural Collaborative Filtering").

    ``z_1 = relu(W_1 [p_u; q_i] + c_1)``, ``z_k = relu(W_k z_{k-1} + c_k)``; the chance that user u likes item i is
    ``sigmoid(h . z_L + b_i)``, trained with binary cross-entropy on positives and sampled negatives. The first layer is
    taken apart, ``W_1 [p; q] = A p + B q``, so that it costs one product per user and per item, not per pair. The bias
    b_i of an item is ours.

    Takes the parameters of `NeuralRecommender`, and:

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

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return {
            **tower_tables(n_users, n_items, self.dim, self.layers),
            "output_weights_": ParameterTable((self.layers[-1],), self.layers[-1] ** -0.5),
            "item_biases_": ParameterTable((n_items, 1)),
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


def tower_tables(
    n_users: int, n_items: int, dim: int, layers: tuple[int, ...], prefix: str = ""
) -> dict[str, ParameterTable]:
    """Return the tables of a tower; weights start as for layers of rectified units (He et al., 2015)."""
    tables = {
        f"{prefix}user_vectors_": ParameterTable((n_users, dim), 0.1),
        f"{prefix}item_vectors_": ParameterTable((n_items, dim), 0.1),
        f"{prefix}layer_1_users_": ParameterTable((dim, layers[0]), dim**-0.5),
        f"{prefix}layer_1_items_": ParameterTable((dim, layers[0]), dim**-0.5),
        f"{prefix}layer_1_biases_": ParameterTable((layers[0],)),
    }
    for k, (width, after) in enumerate(pairwise(layers), start=2):
        tables[f"{prefix}layer_{k}_weights_"] = ParameterTable((width, after), (2 / width) ** 0.5)
        tables[f"{prefix}layer_{k}_biases_"] = ParameterTable((after,))
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


@register("neumf")
@dataclass(eq=False)
class NeuMF(NeuralRecommender):
    """Neural matrix factorisation (He et al., 2017, "Neural Collaborative Filtering").

    The chance that user u likes item i is ``sigmoid(h . [p_u * q_i; z_L] + b_i)``: the elementwise product of `GMF`
    beside the last layer z_L of `MLP`, which have vectors of their own; binary cross-entropy on positives and sampled
    negatives. With ``pretrain_epochs`` both are trained alone first; their output weights then come in with the shares
    ``alpha`` and ``1 - alpha``. The bias b_i of an item is ours.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    layers
        Widths of the hidden layers of the MLP part.
    pretrain_epochs
        Epochs of GMF and of MLP on their own; 0: start from random numbers.
    alpha
        Share of the pre-trained GMF in the output, from 0 to 1.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> NeuMF(dim=8, layers=(16, 8), n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    layers: tuple[int, ...] = (64, 32, 16)
    pretrain_epochs: int = 0
    alpha: float = 0.5

    def _check(self) -> None:
        super()._check()
        check_layers(self.layers)
        at_least("pretrain_epochs", self.pretrain_epochs, 0)
        positive("alpha", self.alpha, or_zero=True)
        if self.alpha > 1:
            raise ParameterError(f"alpha={self.alpha!r}: the share of GMF is a number from 0 to 1")

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return {
            "gmf_user_vectors_": ParameterTable((n_users, self.dim), 0.1),
            "gmf_item_vectors_": ParameterTable((n_items, self.dim), 0.1),
            "gmf_weights_": ParameterTable((self.dim,), 0.0, 1.0),
            **tower_tables(n_users, n_items, self.dim, self.layers, "mlp_"),
            "mlp_output_weights_": ParameterTable((self.layers[-1],), self.layers[-1] ** -0.5),
            "item_biases_": ParameterTable((n_items, 1)),
        }

    def _initial(self, train: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        start = super()._initial(train, rng)
        return start | self._pretrained(train) if self.pretrain_epochs else start

    def _pretrained(self, train: Interactions) -> dict[str, FloatArray]:
        """Train both parts alone, and return what they have learned under the names of the whole."""
        shared: dict[str, Any] = {
            name: value for name, value in self.get_params().items() if name in GMF().get_params()
        }
        shared["epochs"] = self.pretrain_epochs
        gmf = GMF(**shared).fit(train, progress=False).to_arrays()
        mlp = MLP(**shared, layers=self.layers).fit(train, progress=False).to_arrays()
        found = {f"gmf_{name}": values for name, values in gmf.items()}
        found |= {f"mlp_{name}": values for name, values in mlp.items()}
        shares = {"gmf": np.float32(self.alpha), "mlp": np.float32(1 - self.alpha)}
        found["gmf_weights_"] = shares["gmf"] * found["gmf_weights_"]
        found["mlp_output_weights_"] = shares["mlp"] * found["mlp_output_weights_"]
        biases = [shares[part] * found.pop(f"{part}_item_biases_") for part in shares]
        return {**found, "item_biases_": biases[0] + biases[1]}

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        weighted = look_up(p["gmf_user_vectors_"], users) * p["gmf_weights_"]
        linear = inner(weighted, look_up(p["gmf_item_vectors_"], items)) + look_up(p["item_biases_"], items)[..., 0]
        scores: Tensor = linear + tower(p, users, items, "mlp_") @ p["mlp_output_weights_"]
        return scores

    def _floats_per_user(self, n_items: int) -> int:
        return n_items * (3 + tower_floats(self.layers))
