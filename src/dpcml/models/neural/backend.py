"""PyTorch, imported when it is needed: devices, threads, tensor operations and losses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpcml.utils.arrays import Array
from dpcml.utils.errors import ParameterError
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count

if TYPE_CHECKING:
    from torch import Tensor


def load_torch() -> Any:
    """Return the module torch, or raise a `MissingExtraError` that says how to install it.

    Examples
    --------
    >>> load_torch().zeros(2).tolist()
    [0.0, 0.0]
    """
    return require("torch", "neural")


def check_device_name(device: Any) -> None:
    """Raise a `ParameterError` unless ``device`` is the name of a device.

    Examples
    --------
    >>> check_device_name("gpu")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: device='gpu': use 'cpu', 'cuda' or 'cuda:0', 'cuda:1'...
    """
    kind, _, number = str(device).partition(":")
    known = isinstance(device, str) and (device in ("cpu", "cuda") or (kind == "cuda" and number.isdigit()))
    if not known:
        raise ParameterError(f"device={device!r}: use 'cpu', 'cuda' or 'cuda:0', 'cuda:1'...")


def available(device: str) -> str:
    """Return the device if this machine has it; raise a `ParameterError` otherwise.

    Examples
    --------
    >>> available("cpu")
    'cpu'
    """
    if device != "cpu":
        count = load_torch().cuda.device_count()
        wanted = int(device.partition(":")[2] or 0)
        if wanted >= count:
            has = f"cuda:0 to cuda:{count - 1}" if count else "none that this PyTorch can use"
            raise ParameterError(f"device={device!r}: there is no such GPU here ({has}); use device='cpu'")
    return device


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Set the number of threads of torch (None: all cores) within a ``with``.

    Examples
    --------
    >>> before = load_torch().get_num_threads()
    >>> with torch_threads(1):
    ...     load_torch().get_num_threads()
    1
    >>> load_torch().get_num_threads() == before
    True
    """
    torch = load_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tensor(array: Array, device: str = "cpu") -> Tensor:
    """Return a copy of an array as a tensor; torch aligns its memory, so that equal arrays give equal bits."""
    made: Tensor = load_torch().tensor(array, device=device)
    return made


def look_up(table: Tensor, rows: Tensor) -> Tensor:
    """Return rows of a table, with a gradient that is summed faster than that of indexing.

    Examples
    --------
    >>> torch = load_torch()
    >>> look_up(torch.eye(3), torch.tensor([[2, 0]])).tolist()
    [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]
    """
    found: Tensor = load_torch().nn.functional.embedding(rows, table)
    return found


def inner(users: Tensor, items: Tensor) -> Tensor:
    """Return inner products (B, K) of users (B, d) with their items (B, K, d), or with the same (1, K, d) for all.

    Examples
    --------
    >>> torch = load_torch()
    >>> inner(torch.tensor([[1.0, 2.0]]), torch.tensor([[[3.0, 0.0], [0.0, 1.0]]])).tolist()
    [[3.0, 2.0]]
    """
    return cross(users[:, None, :], items)[:, 0]


def cross(vectors: Tensor, items: Tensor) -> Tensor:
    """Return inner products (B, C, K) of vectors (B, C, d) with items (B, K, d), or with the same (1, K, d) for all.

    The latter is one product of two matrices.

    Examples
    --------
    >>> torch = load_torch()
    >>> cross(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.tensor([[[3.0, 1.0]]])).tolist()
    [[[3.0], [2.0]]]
    """
    if len(items) > 1:
        return vectors @ items.mT
    return (vectors.reshape(-1, vectors.shape[-1]) @ items[0].T).view(*vectors.shape[:2], -1)


def largest_inner(users: Tensor, items: Tensor) -> Tensor:
    """Return the largest inner product (B, K) of one of a user's vectors (B, C, d) with items (B or 1, K, d).

    Examples
    --------
    >>> torch = load_torch()
    >>> largest_inner(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.tensor([[[3.0, 1.0], [0.0, 1.0]]])).tolist()
    [[3.0, 2.0]]
    """
    return cross(users, items).amax(1)


# Losses of a positive (column 0) and its negatives; each returns the mean over the positives of a batch.


def cross_entropy(scores: Tensor) -> Tensor:
    """Return the binary cross-entropy of logits: column 0 should be 1, the others 0; summed over columns.

    Examples
    --------
    >>> torch = load_torch()
    >>> round(float(cross_entropy(torch.tensor([[0.0, 0.0]]))), 4)  # twice log 2
    1.3863
    """
    softplus = load_torch().nn.functional.softplus
    loss: Tensor = softplus(-scores[:, 0]).mean() + softplus(scores[:, 1:]).sum(1).mean()
    return loss


def least_squares(scores: Tensor, negative_weight: float) -> Tensor:
    """Return the squared error of column 0 against 1, and the weighted one of the others against 0, summed.

    Examples
    --------
    >>> float(least_squares(load_torch().tensor([[0.0, 1.0, 2.0]]), 0.5))
    3.5
    """
    return (1 - scores[:, 0]).square().mean() + negative_weight * scores[:, 1:].square().sum(1).mean()


def hinge(scores: Tensor, margin: float) -> Tensor:
    """Return by how much column 0 fails to exceed each other column by the margin, summed over columns.

    Examples
    --------
    >>> float(hinge(load_torch().tensor([[2.0, 1.5, 0.0]]), 1.0))
    0.5
    """
    return (margin - scores[:, :1] + scores[:, 1:]).relu().sum(1).mean()


def hardest(scores: Tensor) -> Tensor:
    """Return the positive's score and the highest of its negatives'; shape (B, 2).

    Examples
    --------
    >>> hardest(load_torch().tensor([[2.0, 1.5, 0.0]])).tolist()
    [[2.0, 1.5]]
    """
    both: Tensor = load_torch().stack([scores[:, 0], scores[:, 1:].amax(1)], dim=1)
    return both


def diversity_hinge(vectors: Tensor, lower: float, upper: float) -> Tensor:
    """Return by how much half the mean squared distance of each user's vectors leaves the bounds (DCRS); (B,).

    ``vectors`` has shape (B, C, d). The mean over ordered pairs comes from the spread around their centre:
    ``delta = (sum_c |u_c|^2 - |sum_c u_c|^2 / C) / (C - 1)``.

    Examples
    --------
    >>> pair = load_torch().tensor([[[0.0, 0.0], [2.0, 0.0]]])
    >>> diversity_hinge(pair, 0.1, 0.5).tolist()  # delta is 2
    [1.5]
    """
    n = vectors.shape[1]
    delta = (vectors.square().sum((1, 2)) - vectors.sum(1).square().sum(1) / n) / max(n - 1, 1)
    return (lower - delta).relu() + (delta - upper).relu()
