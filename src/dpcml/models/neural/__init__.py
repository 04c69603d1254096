"""Models trained with PyTorch, one file each; torch is imported when one of them is fitted or scores."""

from dpcml.models.neural import gmf

__all__ = ["gmf"]
