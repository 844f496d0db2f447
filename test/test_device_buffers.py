"""Kept buffers, with NumPy's memory in place of the device's: what is kept, what grows, what is used again."""

import numpy as np
import pytest

from gpu_planners.grid.agents import MOST_WORDS
from gpu_planners.grid.device_buffers import DeviceBuffers
from gpu_planners.grid.pinned import PinnedPool


def test_buffers_are_kept_and_grow():
    made = []
    buffers = DeviceBuffers(lambda count, kind: made.append(count) or np.empty(count, kind))
    assert "a" not in buffers and buffers.nbytes == 0
    first = buffers.room("a", 100, np.int64)
    assert first.dtype == np.int64 and buffers.room("a", 80, np.int64) is first is buffers["a"] and buffers.nbytes == 800
    buffers.room("none", 0, np.uint8)
    assert len(buffers.room("a", 101, np.int64)) >= 101 and "a" in buffers
    assert made == [100, 1, 126]  # a quarter more from the second time on


def test_the_old_buffer_is_free_before_the_new_one_is_there():
    buffers = DeviceBuffers(lambda count, kind: held.append(buffers.nbytes) or np.empty(count, kind))
    held = []
    for count in (10, 20, 40):
        buffers.room("a", count, np.uint8)
    assert held == [0, 0, 0]


def test_an_answer_is_written_where_all_of_it_has_room():
    def writing(count):
        def write(array):
            tried.append(len(array))
            if count <= len(array):
                array[:count] = 7
            return count

        return write

    buffers, tried = DeviceBuffers(np.empty), []
    assert buffers.filled("a", np.uint32, writing(100)) == 100 and (buffers["a"][:100] == 7).all()
    assert buffers.filled("a", np.uint32, writing(99)) == 99
    assert len(tried) == 3 and tried[0] == 1 and tried[1] == tried[2] >= 100
    with pytest.raises(MemoryError, match="paths take more than 4294967296 bytes; allowed: fewer agents at once"):
        buffers.filled("a", np.uint32, lambda array: MOST_WORDS + 1)


def test_page_locked_memory_is_used_again_when_no_view_is_left():
    made = []
    pool = PinnedPool(lambda count, kind: made.append(count) or np.zeros(count, kind))
    one = pool.take(100, np.int32)
    assert one.shape == (100,) and one.dtype == np.int32
    one[:] = 1
    other = pool.take(100, np.int32)
    other[:] = 2
    view = one[40:].view(np.uint8)
    del one
    third = pool.take(100, np.int32)
    third[:] = 3
    assert len(made) == 3 and (view.view(np.int32) == 1).all() and (other == 2).all()  # the view keeps the first one's memory
    del view, other
    again = [pool.take(100, np.int32), pool.take(5, np.float64)]
    assert len(made) == 3 and len(again[1]) == 5
    assert len(pool.take(0, np.uint8)) == 0 and len(made) == 4
    del again
    pool.take(10**4, np.uint8)
    assert sum(a.nbytes for a in pool._buffers) < 500 + 2 * 10**4  # those that were too small and free are given back
