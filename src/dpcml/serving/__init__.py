"""A trained model as an HTTP service, with a web page to explore it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
