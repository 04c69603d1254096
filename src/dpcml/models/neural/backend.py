"""PyTorch, imported when it is needed: threads, devices, tensors from arrays."""

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
    """Reject what is no name of a device.

    Examples
    --------
    >>> check_device_name("gpu")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: device='gpu': use 'cpu', 'cuda' or 'cuda:0', 'cuda:1'...
    """
    kind, _, number = str(device).partition(":")
    if device != "cpu" and not (kind == "cuda" and (number.isdigit() or device == "cuda")):
        raise ParameterError(f"device={device!r}: use 'cpu', 'cuda' or 'cuda:0', 'cuda:1'...")


def available(device: str) -> str:
    """Return the device if this machine has it, else say what it has.

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
    """Let torch use so many threads (None: all cores) for a while.

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
    """Return a copy of an array as a tensor; memory of torch's own is aligned, so equal arrays give equal bits."""
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
