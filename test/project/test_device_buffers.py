"""Kept buffers, with NumPy's memory in place of the device's: what is kept, what grows, what is used again."""

import weakref

import numpy as np
import pytest

from gpu_planners.grid.paths import MOST_WORDS, check_words
from gpu_planners.parallel.buffers import DeviceBuffers
from gpu_planners.parallel.pinned import PinnedPool


def test_buffers_are_kept_and_grow():
    made = []
    buffers = DeviceBuffers(lambda count, kind: made.append(count) or np.empty(count, kind))
    assert "a" not in buffers and buffers.nbytes == 0
    first = buffers.room("a", 100, np.int64)
    assert (
        first.dtype == np.int64 and buffers.room("a", 80, np.int64) is first is buffers["a"] and buffers.nbytes == 800
    )
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
    assert buffers.filled("a", np.uint32, writing(100), check_words) == 100 and (buffers["a"][:100] == 7).all()
    assert buffers.filled("a", np.uint32, writing(99), check_words) == 99
    assert len(tried) == 3 and tried[0] == 1 and tried[1] == tried[2] >= 100
    with pytest.raises(MemoryError, match="paths take more than 4294967296 bytes; allowed: fewer agents at once"):
        buffers.filled("a", np.uint32, lambda array: MOST_WORDS + 1, check_words)


def test_page_locked_memory_is_used_again_when_no_view_is_left():
    made = []  # weak references to the buffers

    def allocate(count, kind):
        buffer = np.zeros(count, kind)
        made.append(weakref.ref(buffer))
        return buffer

    pool = PinnedPool(allocate)
    one = pool.take(100, np.int32)
    assert one.shape == (100,) and one.dtype == np.int32
    one[:] = 1
    other = pool.take(100, np.int32)
    other[:] = 2
    view = one[40:].view(np.uint8)
    del one
    third = pool.take(100, np.int32)
    third[:] = 3
    assert (
        len(made) == 3 and (view.view(np.int32) == 1).all() and (other == 2).all()
    )  # the view keeps the first one's memory
    del view, other
    again = [pool.take(100, np.int32), pool.take(5, np.float64)]
    assert len(made) == 3 and len(again[1]) == 5
    assert len(pool.take(0, np.uint8)) == 0 and len(made) == 4
    del again
    large = pool.take(10**4, np.uint8)
    assert len(made) == 5 and len(large) == 10**4
    # those that were too small and free are given back; the third one is in use
    assert [buffer() is None for buffer in made] == [True, True, False, True, False]


def test_views_of_views_keep_page_locked_memory():
    pool = PinnedPool(np.zeros)
    answer = pool.take(8, np.int64)
    answer[:] = 5
    piece = answer.view(np.uint8).reshape(8, 8)[2:].T[:, 1:].view()
    del answer
    others = [pool.take(8, np.int64) for _ in range(3)]
    for other in others:
        other[:] = 9
    assert set(piece.ravel().tolist()) == {5, 0}


def test_what_holds_an_array_is_told_before_it_is_given_up():
    told = []
    buffers = DeviceBuffers(np.empty, lambda: told.append(buffers.nbytes))
    for count in (10, 10, 20, 5, 25, 26):
        buffers.room("a", count, np.uint8)
    assert told == [0, 0]  # at 20 and at 26: the old array is out of the buffers already
