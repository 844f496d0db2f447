"""The parts of a motion of several: free motions, straight ones of the joints, lines and arcs of the tool."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import numbers
from ..errors import SettingsError, shown
from ..settings import Setting
from .cartesian import Arc

SCALING = Setting(1.0, "Fraction of the joints' limits", 1e-3, 1.0)
ALONG_TOOL = Setting(False, "The translation is in the link's own axes")
BLEND = Setting(0.0, "How far the tip may leave the end of a segment", 0.0, 10.0, unit="metres")


@dataclass(frozen=True)
class Segment:
    """What all parts of a motion have.

    blend_radius: metres within which the tip passes the part's end without a stop; 0: it stops there, as it does where
        no rounded corner is free
    velocity_scaling, acceleration_scaling: fractions of the joints' limits
    """

    blend_radius: float = field(default=0.0, kw_only=True)
    velocity_scaling: float = field(default=1.0, kw_only=True)
    acceleration_scaling: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        BLEND.checked("blend_radius", self.blend_radius)
        SCALING.checked("velocity_scaling", self.velocity_scaling)
        SCALING.checked("acceleration_scaling", self.acceleration_scaling)


@dataclass(frozen=True)
class Free(Segment):
    """Any collision-free motion to one of the goals (G, dof), or to one of the poses (N, 4, 4) of the link."""

    goals: ArrayLike = ()
    poses: ArrayLike = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, one in (("goals", (None,)), ("poses", (4, 4))):
            given = numbers(name, getattr(self, name), finite=False)
            if given.size:
                numbers(name, given, one if given.ndim == len(one) else (None, *one), finite=False)
            object.__setattr__(self, name, given.astype(float))


@dataclass(frozen=True)
class Straight(Segment):
    """The link moves on a straight line and turns evenly: to a pose (4, 4), or by a translation (3,) in metres.

    along_tool: the translation is in the link's own axes, as for an approach along the tool
    """

    pose: ArrayLike | None = None
    translation: ArrayLike | None = None
    along_tool: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        ALONG_TOOL.checked("along_tool", self.along_tool)
        for name, shape in (("pose", (4, 4)), ("translation", (3,))):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, numbers(name, getattr(self, name), shape).astype(float))


@dataclass(frozen=True)
class Circular(Segment):
    """The link moves on an arc and turns evenly, to a pose (4, 4)."""

    pose: ArrayLike
    arc: Arc

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pose", numbers("pose", self.pose, (4, 4)).astype(float))
        if not isinstance(self.arc, Arc):
            raise SettingsError(f"arc is {shown(self.arc)}; allowed: a cartesian.Arc")


@dataclass(frozen=True)
class Direct(Segment):
    """All joints move together on a straight line in joint space, to a configuration (dof,). It goes around nothing."""

    goal: ArrayLike

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "goal", numbers("goal", self.goal, (None,)).astype(float))


class Later(NamedTuple):
    """A segment that depends on where it begins.

    kind: Free, Direct, Straight or Circular
    make: called with that configuration (dof,) for one of the kind; what it raises is raised by `solve`
    """

    kind: type
    make: Callable[[np.ndarray], Any]


KINDS = Free, Direct, Straight, Circular
NAMES = "Free, Direct, Straight or Circular"
LINES = Straight, Circular


def check_segments(segments: Sequence, dof: int) -> None:
    """SettingsError for what is no segment of a robot of `dof` joints."""
    if not len(segments):
        raise SettingsError(f"segments is empty; allowed: at least one {NAMES}")
    for number, segment in enumerate(segments):
        if not isinstance(segment, Later):
            check_segment(number, segment, dof)
        elif segment.kind not in KINDS:
            raise SettingsError(f"segment {number}: kind is {shown(segment.kind)}; allowed: {NAMES}")


def check_segment(number: int, segment: Any, dof: int) -> None:
    if isinstance(segment, Free):
        goals = np.asarray(segment.goals)
        if not goals.size and not np.size(segment.poses):
            raise SettingsError(f"segment {number} has no goal; allowed: goals or poses")
        if goals.size and (goals.ndim > 2 or goals.shape[-1] != dof):
            raise SettingsError(f"segment {number}: goals has shape {goals.shape}; allowed: ({dof},) or (G, {dof})")
    elif isinstance(segment, Direct):
        if np.shape(segment.goal) != (dof,):
            raise SettingsError(f"segment {number}: goal has shape {np.shape(segment.goal)}; allowed: ({dof},)")
    elif isinstance(segment, Straight):
        if (segment.pose is None) == (segment.translation is None):
            raise SettingsError(f"segment {number}: allowed are either a pose or a translation")
    elif not isinstance(segment, Circular):
        raise SettingsError(f"segment {number} is {shown(segment)}; allowed: {NAMES}")


def kind_of(segment: Any) -> type:
    return segment.kind if isinstance(segment, Later) else type(segment)


def made(number: int, segment: Any, q: np.ndarray) -> Segment:
    """The segment that begins at q (dof,)."""
    if not isinstance(segment, Later):
        return segment
    now = segment.make(q)
    if not issubclass(type(now), segment.kind):
        raise SettingsError(f"segment {number}: made was {shown(now)}; allowed: {segment.kind.__name__}")
    check_segment(number, now, len(q))
    return now
