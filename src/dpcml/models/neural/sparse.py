"""Products of a sparse matrix with a table that is learned."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpcml.models.neural.backend import load_torch, tensor

if TYPE_CHECKING:
    from torch import Tensor


def both_ways(matrix: sparse.csr_array, device: str) -> tuple[Tensor, Tensor]:
    """Return a sparse matrix and its transpose as tensors of float32."""
    return _tensor(matrix.tocsr().sorted_indices(), device), _tensor(matrix.T.tocsr().sorted_indices(), device)


def _tensor(matrix: sparse.csr_array, device: str) -> Tensor:
    parts = [tensor(part.astype(np.int64), device) for part in (matrix.indptr, matrix.indices)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        made: Tensor = load_torch().sparse_csr_tensor(
            *parts, tensor(matrix.data.astype(np.float32), device), size=matrix.shape, check_invariants=True
        )
    return made


def sparse_product(both: tuple[Tensor, Tensor], table: Tensor) -> Tensor:
    """Return ``matrix @ table`` for a matrix as `both_ways` gives it; the gradient is a product with its transpose.

    Torch would transpose anew for each gradient, which takes twice the time of both products.

    Examples
    --------
    >>> torch = load_torch()
    >>> table = torch.ones(3, 1, requires_grad=True)
    >>> product = sparse_product(both_ways(sparse.csr_array(np.array([[1.0, 0.0, 2.0]])), "cpu"), table)
    >>> product.backward()
    >>> product.tolist(), table.grad.tolist()
    ([[3.0]], [[1.0], [0.0], [2.0]])
    """
    product: Tensor = _function().apply(*both, table)
    return product


@cache
def _function() -> Any:
    class Product(load_torch().autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, matrix: Tensor, transposed: Tensor, table: Tensor) -> Tensor:
            ctx.transposed = transposed
            return matrix @ table

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
            return None, None, ctx.transposed @ gradient

    return Product
