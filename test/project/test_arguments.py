"""What `checked` takes and refuses, by the annotation of an argument."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import pytest
from numpy.typing import ArrayLike

from gpu_planners.arguments import Booleans, Numbers, checked, missing_name, numbers
from gpu_planners.errors import ConfigurationError, DeviceError, GridMapError, SettingsError


class Door(Protocol):
    width: float

    def open(self) -> None: ...


class Real:
    def __init__(self):
        self.width = 1.0

    def open(self):
        raise AssertionError


CASES = {  # annotation: (values that are taken, and what they become), values that are refused
    bool: ([(True, True), (np.bool_(False), False)], [1, 0.0, None, "True", np.array([True])]),
    int: ([(3, 3), (np.uint8(200), 200), (2**70, 2**70)], [True, 3.0, "3", None, np.nan, np.array([3])]),
    float: ([(1, 1.0), (np.float32(0.5), 0.5), (np.inf, np.inf)], [np.nan, True, "1", 1j, None, 10**400, [1.0]]),
    str: ([("a", "a"), ("", "")], [b"a", None, 1, ["a"], Path("a")]),
    Sequence[str | PathLike]: ([(["a", Path("b")], ["a", Path("b")])], [[b"a"], [None], "a", ["a\0b"]]),
    str | None: ([("a", "a"), (None, None)], [1, b"a"]),
    tuple[float, int]: ([((1, 2), (1.0, 2)), ([1.5, 2], (1.5, 2))], [(1,), (1, 2, 3), (1, 2.5), "12", 5, None]),
    Sequence[str]: ([(["a"], ["a"]), ((), ())], ["a", [1], None, 5, {"a": 1}, iter("a")]),
    Iterable[int]: ([([1], [1]), ({1: 2}.keys(), [1])], ["1", [None], 5, None]),
    Mapping[str, float]: ([({"a": 1}, {"a": 1.0})], [{"a": "1"}, {1: 1.0}, ["a"], None]),
    Callable[[int], int]: ([(abs, abs)], [1, None]),
    Any: ([(None, None), (object, object)], []),
}


@pytest.mark.parametrize("hint", CASES, ids=str)
def test_kinds_of_single_values(hint):
    def same(value):
        return value

    same.__annotations__["value"] = hint
    call = checked(GridMapError)(same)
    taken, refused = CASES[hint]
    for value, becomes in taken:
        answer = call(value)
        assert answer == becomes and type(answer) is type(becomes) and call(value=value) == becomes
    for value in refused:
        with pytest.raises(GridMapError, match="value is .*; allowed: "):
            call(value)
        with pytest.raises(GridMapError, match="value is .*; allowed: "):
            call(value=value)


NO_NUMBERS = (
    None, "1", b"1", 1j, object(), {}, [None], ["1"], [[1], [1, 2]], [10**400], np.ones(2, complex), np.array(["1"]),
    np.ones(2, bool), np.ma.masked_array([1.0, 2.0], [True, False]), np.array(["2020"], "M8[D]"), iter([1.0]),
)  # fmt: skip


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_array_of_numbers(value):
    @checked(ConfigurationError)
    def same(q: ArrayLike):
        return q

    with pytest.raises(ConfigurationError, match="q is .*; allowed: "):
        same(value)
    with pytest.raises(ConfigurationError, match="q is .*; allowed: "):
        numbers("q", value, error=ConfigurationError)


def test_arrays_keep_their_type_and_are_not_copied():
    @checked(ConfigurationError)
    def same(q: ArrayLike | None, of: Annotated[ArrayLike, Numbers((None, 2))] = (), yes: Booleans = False):
        return q, of, yes

    given = np.ones(3, np.float32)
    assert same(given)[0] is given and same(None)[0] is None and same([1, 2])[0].dtype.kind == "i"
    assert same(1, [[1, 2]], [True])[2].dtype == bool
    for wrong in ([1, 2], [[1, 2, 3]], [[1, np.nan]]):
        with pytest.raises(ConfigurationError, match="of is .*; allowed: "):
            same(1, wrong)


def test_errors_name_the_thing_and_may_differ_by_argument():
    @checked(GridMapError, SettingsError)
    class Shelf:
        def put(self, name: str, size: ArrayLike, count: int = 1, device: Annotated[str, DeviceError] = "cpu"):
            return name

        @staticmethod
        def made(count: int):
            return count

    with pytest.raises(GridMapError, match="'cup': size is 'x'; allowed: an array of real numbers"):
        Shelf().put("cup", "x")
    for call in (lambda: Shelf().put("cup", 1, count=2.5), lambda: Shelf.made("3"), lambda: Shelf().put(5, 1)):
        with pytest.raises(SettingsError):
            call()
    with pytest.raises(DeviceError):
        Shelf().put("cup", 1, 1, 5)
    with pytest.raises(TypeError):  # not with these arguments at all
        Shelf().put("cup", 1, 1, "cpu", 5)


def test_an_object_has_what_its_protocol_names():
    assert missing_name(Door, Real()) == "" and missing_name(Door, object()) == "width"
    halfway = Real()
    del halfway.width
    assert missing_name(Door, halfway) == "width"
