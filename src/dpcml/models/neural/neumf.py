"""NeuMF: GMF and MLP side by side under one output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import inner, look_up
from dpcml.models.neural.gmf import GMF
from dpcml.models.neural.mlp import MLP, check_layers, tower, tower_floats, tower_tables
from dpcml.models.neural.network import Network, Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register
from dpcml.utils.arrays import FloatArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


@register("neumf")
@dataclass(eq=False)
class NeuMF(Network):
    """Neural matrix factorisation (He et al., 2017, "Neural Collaborative Filtering").

    The chance that user u likes item i is ``sigmoid(h . [p_u * q_i; z_L] + b_i)``: the elementwise product of `GMF`
    beside the last layer z_L of `MLP`, which have vectors of their own; binary cross-entropy on positives and sampled
    negatives. With ``pretrain_epochs`` both are trained alone first; their output weights then come in with the shares
    ``alpha`` and ``1 - alpha``. The bias b_i of an item is ours.

    Takes the parameters of `Network`, and:

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

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        return {
            "gmf_user_vectors_": Table((n_users, self.dim), 0.1),
            "gmf_item_vectors_": Table((n_items, self.dim), 0.1),
            "gmf_weights_": Table((self.dim,), 0.0, 1.0),
            **tower_tables(n_users, n_items, self.dim, self.layers, "mlp_"),
            "mlp_output_weights_": Table((self.layers[-1],), self.layers[-1] ** -0.5),
            "item_biases_": Table((n_items, 1)),
        }

    def _start(self, train_data: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        start = super()._start(train_data, rng)
        return start | self._pretrained(train_data) if self.pretrain_epochs else start

    def _pretrained(self, train_data: Interactions) -> dict[str, FloatArray]:
        """Train both parts alone, and return what they have learned under the names of the whole."""
        shared: dict[str, Any] = {
            name: value for name, value in self.get_params().items() if name in GMF().get_params()
        }
        shared["epochs"] = self.pretrain_epochs
        gmf = GMF(**shared).fit(train_data, progress=False).to_arrays()
        mlp = MLP(**shared, layers=self.layers).fit(train_data, progress=False).to_arrays()
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
