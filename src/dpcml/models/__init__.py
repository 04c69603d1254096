"""Models, found by name in `MODELS`; the stub beside this file lists the public names, which are imported lazily."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
