"""Models trained with PyTorch, one file each; torch is imported when one of them is fitted or scores."""

from dpcml.models.neural import gmf, m2f, mgmf, mlp, neumf

__all__ = ["gmf", "m2f", "mgmf", "mlp", "neumf"]
