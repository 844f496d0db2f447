"""Page-locked host memory that is used again when nobody looks at it any more."""

import sys

import numpy as np

ALONE = [sys.getrefcount(a) for a in [object()]][0]  # references counted to what only a list, and the loop over it, hold


class PinnedPool:
    """Buffers for answers: an answer keeps its buffer as long as any view of it lives.

    allocate: (count, dtype) -> array, such as cuda.pinned_array
    """

    def __init__(self, allocate):
        self._allocate, self._buffers = allocate, []

    def take(self, count, dtype):
        """-> (count,) array in page-locked memory; its content is undefined"""
        taken = int(count) * np.dtype(dtype).itemsize
        free = [sys.getrefcount(a) == ALONE for a in self._buffers]  # a view's base is the buffer itself
        fitting = [a for a, is_free in zip(self._buffers, free, strict=True) if is_free and a.nbytes >= taken]
        if fitting:
            buffer = min(fitting, key=lambda a: a.nbytes)
        else:
            self._buffers = [a for a, is_free in zip(self._buffers, free, strict=True) if not is_free]
            buffer = self._allocate(max(taken + taken // 4, 1), np.uint8)
            self._buffers.append(buffer)
        return buffer[:taken].view(dtype)
