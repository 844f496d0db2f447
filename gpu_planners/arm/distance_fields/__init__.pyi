from .fields import FieldRule, block_bricks, grid_bricks

__all__ = ["FieldRule", "block_bricks", "grid_bricks"]
