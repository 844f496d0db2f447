"""Independent checks of what the planners answer: nothing here comes from them.

Arms by pinocchio and coal (the extra `verify`), paths on grids by scipy's Dijkstra and a walk along each path, fleets
by array operations on positions.
"""

import lazy_loader

# names are imported when they are first asked for: __init__.pyi says from where
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
