"""The learner of the PyTorch models: arrays that are also tensors, and one step of Adam per batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpcml.models.neural.backend import load_torch, tensor
from dpcml.training.samplers import BatchSampler
from dpcml.utils.arrays import Array, FloatArray

if TYPE_CHECKING:
    from torch import Tensor

Tensors = Mapping[str, Any]  # by name: what is learned, and what is known of the training data


class TorchObjective(Protocol):
    """Loss and projection of a model."""

    def loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return the mean loss of a batch: users (B,), items (B, 1 + S)."""

    def project(self, p: Tensors) -> None:
        """Bring tensors back into their sets, in place, after a step."""


class TorchLearner:
    """Trains arrays in place, epoch by epoch, on a device.

    The state is NumPy arrays. Tensors on the CPU share their memory; those on another device are copied there when an
    epoch begins and back when it ends. Steps are dense: with batches of thousands most rows are touched anyway.

    Parameters
    ----------
    objective
        Loss and projection.
    initial
        Initial values of all learned arrays.
    known
        Tensors on the device that are computed from the training data and not learned.
    draws
        Batches.
    regularisation
        Share by which all vectors shrink per step, times the learning rate (decoupled weight decay).
    device
        Where to compute.
    """

    def __init__(
        self,
        objective: TorchObjective,
        initial: Mapping[str, FloatArray],
        known: Tensors,
        draws: BatchSampler,
        *,
        regularisation: float,
        device: str,
    ) -> None:
        torch = load_torch()
        self._objective, self._draws = objective, draws
        self.n_items, self.device = draws.n_items, device
        self._learned = {name: tensor(values, device).requires_grad_() for name, values in initial.items()}
        self.tensors: Tensors = {**known, **self._learned}
        vectors = [values for name, values in self._learned.items() if name.endswith("vectors_")]
        others = [values for name, values in self._learned.items() if not name.endswith("vectors_")]
        groups = [{"params": vectors, "weight_decay": regularisation}, {"params": others, "weight_decay": 0.0}]
        self._adam = torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, fused=True)
        self._mirror: dict[str, tuple[Array, Tensor]] = {}
        for name, values in self._learned.items():
            moments = {key: torch.zeros_like(values) for key in ("exp_avg", "exp_avg_sq")}
            moments["step"] = torch.zeros((), device=device)
            self._adam.state[values] = moments
            for key, one in {"": values.detach(), **moments}.items():
                self._mirror[f"{name}.{key}" if key else name] = (one.cpu().numpy(), one)

    def compile(self) -> None:
        """Compile the kernel that draws negatives."""
        self._draws.compile()

    def state(self) -> dict[str, Array]:
        """Return the arrays that are the whole state, to be saved or overwritten in place."""
        return {name: array for name, (array, _) in self._mirror.items()}

    def learned(self) -> list[str]:
        """Return the names of the arrays that make up the model."""
        return list(self._learned)

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive once; return the mean loss per positive, before each batch's step."""
        torch = load_torch()
        self._to_device()
        for group in self._adam.param_groups:
            group["lr"] = rate
        total, count = 0.0, 0
        for k, (users, items) in enumerate(self._draws.epoch(number)):
            self._adam.zero_grad()
            batch = (torch.from_numpy(rows.astype(np.int64)).to(self.device) for rows in (users, items))
            loss: Any = self._objective.loss(self.tensors, *batch)
            loss.backward()
            self._adam.step()
            with torch.no_grad():
                self._objective.project(self.tensors)
            total, count = total + len(users) * float(loss.detach()), count + len(users)
            if report is not None:
                report((k + 1) / self._draws.n_batches)
        self._from_device()
        return total / count

    def _to_device(self) -> None:
        if self.device != "cpu":
            torch = load_torch()
            for array, one in self._mirror.values():
                one.copy_(torch.from_numpy(array))

    def _from_device(self) -> None:
        if self.device != "cpu":
            for array, one in self._mirror.values():
                array[...] = one.cpu().numpy()
