"""Distance fields as obstacles: dense grids and sparse blocks, signed or not, truncated or not."""

import lazy_loader

# names are imported when they are first asked for: __init__.pyi says from where
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
