"""Losses of a positive and its negatives; each returns the mean over the positives of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcml.models.neural.backend import load_torch

if TYPE_CHECKING:
    from torch import Tensor


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
