"""Settings describe themselves: one field gives the default, the check, the docstring."""

import inspect
import math
from dataclasses import FrozenInstanceError, dataclass, fields

import numpy as np
import pytest

from gpu_planners.arm import PLANNERS, CollisionChecker, MotionCheck
from gpu_planners.arm.collision.checker import MARGIN
from gpu_planners.arm.planners.tree import rrt, rrt_star
from gpu_planners.errors import SettingsError
from gpu_planners.grid.planner import ALGORITHMS
from gpu_planners.settings import Described, changed, setting, title

KINDS = {name: planner.Settings for name, planner in PLANNERS.items()} | {
    name: algorithm.settings for name, algorithm in ALGORITHMS.items()
}
NUMBERS = [
    pytest.param(kind, name, rule, id=f"{planner}.{name}")
    for planner, kind in {**KINDS, "MotionCheck": MotionCheck}.items()
    for name, rule in kind.rules.items()
    if type(rule.default) in (int, float)
]


@pytest.mark.parametrize("planner", KINDS)
def test_every_field_has_its_text_in_the_docstring(planner):
    kind = KINDS[planner]
    assert title(kind) == f"{planner}.Settings"
    assert {field.name for field in fields(kind)} == set(kind.rules)
    lines = kind.__doc__.splitlines()
    for name, rule in kind.rules.items():
        (line,) = [line for line in lines if line.startswith(f"{name} = {rule.default!r}: ")]
        assert rule.text in line and rule.range in line and getattr(kind(), name) == rule.default


@pytest.mark.parametrize("kind, name, rule", NUMBERS)
def test_the_ends_of_a_range_are_taken_and_what_lies_beyond_is_refused(kind, name, rule):
    for end, away in ((rule.low, -math.inf), (rule.high, math.inf)):
        if rule.must is None or rule.must[1](end):
            value = getattr(kind(**{name: type(rule.default)(end)}), name)
            assert value == end and type(value) is type(rule.default)
        if math.isfinite(end):
            beyond = int(end) + (1 if away > 0 else -1) if type(rule.default) is int else np.nextafter(end, away)
            with pytest.raises(SettingsError, match=rf"\.{name} is .*; allowed: .*{rule.low} to {rule.high}"):
                kind(**{name: beyond})


@dataclass(frozen=True)
class Base(Described):
    """A base."""

    speed: float = setting(1.0, "How fast", 0.0, 2.0, unit="m/s")
    names: tuple = setting((), "Whose", items=str)


@dataclass(frozen=True)
class Derived(Base):
    """One of it."""

    size: int = setting(4, "How large", choices=(4, 8))
    even: int = setting(2, "Any", 0, 10, must=("an even number", lambda n: n % 2 == 0))
    speed: float = changed(Base, "speed", default=1.5)


def test_a_changed_default_keeps_the_rest():
    assert Derived().speed == 1.5 and Base().speed == 1.0
    assert "speed = 1.5: How fast (0 to 2 m/s)" in Derived.__doc__ and "speed = 1.0: How fast" in Base.__doc__
    assert list(Derived.rules) == ["size", "even", "speed", "names"]


@pytest.mark.parametrize(
    "given, words",
    [
        ({"speed": 3}, "Derived.speed is 3; allowed: a number from 0.0 to 2.0 m/s"),
        ({"speed": True}, "speed is True"),
        ({"speed": math.nan}, "speed is nan"),
        ({"size": 5}, "size is '5'; allowed: 4, 8"),
        ({"even": 3}, "even is 3; allowed: an even number"),
        ({"even": 2.0}, "even is 2.0; allowed: an integer"),
        ({"names": "red"}, "names is 'red'; allowed: a list of texts"),
        ({"names": ["red", 5]}, r"names\[1\] is 5; allowed: a text"),
    ],
)
def test_a_wrong_value_is_named(given, words):
    with pytest.raises(SettingsError, match=words):
        Derived(**given)


def test_values_become_pythons_own_and_stay():
    made = Derived(speed=np.float32(0.5), even=np.uint8(6), names=["red"])
    assert (made.speed, made.even, made.names) == (0.5, 6, ("red",))
    assert (type(made.speed), type(made.even)) == (float, int)
    with pytest.raises(FrozenInstanceError):
        made.speed = 1.0


def test_settings_that_depend_on_each_other():
    assert MotionCheck("count", 100).step == 100
    with pytest.raises(SettingsError, match="MotionCheck.step is 0.5; allowed in mode 'count'"):
        MotionCheck("count", 0.5)
    for planner in (rrt, rrt_star):
        assert planner.Settings(range=0).range == 0
        with pytest.raises(SettingsError, match="range is 0.0005; allowed: 0, or a number from 0.001"):
            planner.Settings(range=0.0005)


def test_the_margin_has_one_range():
    assert inspect.signature(CollisionChecker).parameters["margin"].default == MARGIN.default
    assert MARGIN.checked("x", np.int64(100)) == 100.0
    with pytest.raises(SettingsError, match="x is 100.5; allowed: a number from 0.0 to 100.0 metres"):
        MARGIN.checked("x", 100.5)
