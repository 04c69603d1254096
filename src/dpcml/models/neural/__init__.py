"""Models trained with PyTorch, one file each; torch is imported when one of them is fitted or scores."""

from dpcml.models.neural import adacml, gmf, hlr, lrml, m2f, mgmf, mlp, neumf, transcf

__all__ = ["adacml", "gmf", "hlr", "lrml", "m2f", "mgmf", "mlp", "neumf", "transcf"]
