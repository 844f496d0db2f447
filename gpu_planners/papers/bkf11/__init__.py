"""[BKF11]: the planar d-link arm among rectangles, whose motions are checked in batches."""
