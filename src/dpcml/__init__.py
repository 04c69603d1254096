"""dpcml: recommendation for people with more than one interest.

The stub beside this file lists the public names. They are imported on first use, so that ``import dpcml`` is cheap.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
