"""Layouts of records in flat buffers: fields do not overlap, and Python and compiled code see the same."""

from typing import NamedTuple

import numpy as np

from gpu_planners.device import lean_njit, njit
from gpu_planners.parallel.layout import floats, ints, layout, on_host, reader, starts
from gpu_planners.parallel.memory import item  # noqa: F401 - for `reader`
from gpu_planners.parallel.team import borrowed


class Sums(NamedTuple):
    count: int = ints()
    on: bool = ints(gap="2")
    own: np.ndarray = floats("n", own=True)
    first: np.ndarray = floats("count * n", gap="3")
    second: np.ndarray = ints("2")
    step: float = floats()


class Member(NamedTuple):
    number: int
    count: int


sums_sizes, open_sums, write_sums = layout(Sums, "count n")


@njit
def total(float_buffer, int_buffer, n, worker):
    one = open_sums(borrowed(float_buffer), borrowed(int_buffer), n, worker)
    return one.count, one.on, one.own.sum(), one.first.sum(), one.second.sum(), one.step


def test_fields_lie_behind_each_other():
    n_floats, n_ints = sums_sizes(4, 5, 3)
    assert (n_floats, n_ints) == (3 + 4 * 5 + 1 + 3 * 5, 1 + 3 + 2)
    a, b = np.arange(n_floats, dtype=np.float32), np.arange(n_ints, dtype=np.int32)
    b[0] = 4
    seen = []
    for number in range(3):
        one = open_sums.py_func(a, b, 5, Member(number, 3))
        assert one.count == 4 and one.on and one.step == 23 and one.second.tolist() == [4, 5]
        assert one.first.tolist() == list(range(3, 23))
        seen += one.own.tolist()
        assert total(a, b, 5, Member(number, 3)) == (4, True, one.own.sum(), one.first.sum(), 9, 23)
    assert seen == list(range(24, n_floats))


@lean_njit
def nested(float_buffer, int_buffer, n, worker):
    return open_sums(float_buffer, int_buffer, n, worker)


def test_compiled_functions_run_on_the_host_with_what_they_call():
    one = on_host(nested)(np.arange(99, dtype=np.float32), np.ones(9, np.int32), 2, Member(0, 1))
    assert one.first.tolist() == [3, 4] and one.step == 5 and one.own.tolist() == [6, 7]


def test_the_host_writes_what_is_opened():
    n_floats, n_ints = sums_sizes.py_func(2, 5, 1)
    rows, numbers = np.zeros((3, n_floats), np.float32), np.zeros((3, n_ints), np.int32)
    first = np.arange(30).reshape(3, 10)
    write_sums(rows, numbers, 2, 5, count=2, on=[True, False, True], first=first, second=[6, 7], step=[0.5, 1.5, 2.5])
    for i in range(3):
        one = open_sums.py_func(rows[i], numbers[i], 5, Member(0, 1))
        assert one.count == 2 and one.on == (i != 1) and one.second.tolist() == [6, 7] and one.step == i + 0.5
        assert one.first.tolist() == first[i].tolist() and not one.own.any()
    assert not rows[:, :3].any(), "gaps stay as they were"


class Pair(NamedTuple):
    a: int
    b: int


class Rooms(NamedTuple):
    two: np.ndarray = floats("2")
    some: np.ndarray = floats("3 * n")


read_pair = reader(Pair)


@njit
def second_of(buffer, at):
    return read_pair(borrowed(buffer), at).b


def test_numbers_are_read_where_they_lie():
    assert second_of(np.arange(9, dtype=np.int32), 4) == 5
    assert [start(5) for start in starts(Rooms, "n")] == [0, 2, 17]
