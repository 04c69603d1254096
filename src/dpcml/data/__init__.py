"""Data: interactions, readers, named data sets, splits and the planted data set; names are imported on first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
