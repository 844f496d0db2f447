"""The objects of a planning scene as one value that never changes: what stands, what links carry, what may touch.

Every change makes a new value or raises, so whoever makes several changes and keeps the last value has made all of them
or none:

    objects = scene.objects
    scene.take(objects.add(table).add(cup).attach("cup", "hand", T_root_hand, touch_links=("finger",)))

Markers, services, point clouds and MoveIt's messages all change the scene this way. No ROS here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...arm import CollisionWorld, RobotModel
from ...arm.collision.world import Piece
from ...arm.control.moving import MovingObstacle
from ...arm.geometry.bricks import Bricks
from ...arm.geometry.shapes import ConvexShape, check_pose
from ...errors import ObstacleError, shortened, shown

ALWAYS = np.inf  # `expires` of objects that stay


class Source(Enum):
    """Who put an object into the scene."""

    FILE = "file"
    MARKERS = "markers"
    SERVICE = "service"
    CLOUD = "cloud"
    MOVEIT = "moveit"
    OTHER_ARM = "other arm"


class Drift(NamedTuple):
    """How an object moves, without turning.

    velocity: (3,) m/s in the root frame; since: seconds on the node's clock, when the object was at its pose
    horizon: seconds after which it stands where it has got to
    """

    velocity: np.ndarray
    since: float
    horizon: float


@dataclass(frozen=True, eq=False)
class SceneObject:
    """An object around the robot that no link carries. It stands, or it moves by itself.

    name: unique in the scene, also among what is attached
    pieces: posed in the object's own frame, metres; pose: (4, 4) T_root_object, metres
    expires: seconds on the node's clock when its life ends
    group: a name that objects share which may be removed together: a marker's namespace
    triangles: how many it was made of, for the node's limit
    parts: {name: (4, 4) T_object_part} of frames that move with it
    drift: how it moves; None: it stands
    """

    name: str
    pieces: tuple[Piece, ...]
    pose: np.ndarray
    source: Source
    expires: float = ALWAYS
    group: str = ""
    triangles: int = 0
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    drift: Drift | None = None

    @cached_property
    def placed(self) -> tuple[Piece, ...]:
        """The pieces in the root frame, named after the object."""
        count = len(self.pieces)
        names = [self.name] if count == 1 else [f"{self.name}#{i}" for i in range(count)]
        return tuple(piece.moved(self.pose, name) for piece, name in zip(self.pieces, names, strict=True))

    @cached_property
    def moving(self) -> MovingObstacle | None:
        """The object as an obstacle that moves; None where it stands."""
        return None if self.drift is None else MovingObstacle(self.name, self.placed, *self.drift)

    @cached_property
    def held(self) -> tuple[Piece, ...]:
        """Pieces in the root frame that hold the object whatever time it is."""
        return self.placed if self.moving is None else self.moving.during(self.moving.since, self.moving.ends)


@dataclass(frozen=True, eq=False)
class CarriedObject:
    """An object that a link carries.

    pose: (4, 4) T_link_object, metres; touch_links: links that it may touch besides `link`; others as of SceneObject
    held_by: links, of touch_links, that hold it as `link` does
    """

    name: str
    pieces: tuple[ConvexShape, ...]
    link: str
    pose: np.ndarray
    touch_links: tuple[str, ...]
    source: Source
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SceneObjects:
    """See the module. standing, carried: by name

    allowed_pairs: {frozenset of two names} of links and objects that may touch each other; names need not exist yet. To
        an object that stands, every pair that is not allowed is checked as before, but without a margin
    allowed: names of objects that everything may touch: they are shown, but not checked
    """

    standing: dict[str, SceneObject] = field(default_factory=dict)
    carried: dict[str, CarriedObject] = field(default_factory=dict)
    allowed_pairs: frozenset[frozenset[str]] = frozenset()
    allowed: frozenset[str] = frozenset()

    def add(self, *objects: SceneObject) -> "SceneObjects":
        """Put objects there; one whose name stands already replaces it. ObstacleError where a name is carried."""
        standing = dict(self.standing)
        for one in objects:
            if not one.name:
                raise ObstacleError("an object of the scene has no name")
            if one.name in self.carried:
                raise ObstacleError(
                    f"'{one.name}' is attached to link '{self.carried[one.name].link}': detach or remove it first"
                )
            check_pose(one.name, one.pose)
            standing[one.name] = one
        return replace(self, standing=standing)

    def append(self, name: str, pieces: Iterable[Piece], parts: dict[str, np.ndarray] | None = None) -> "SceneObjects":
        one = self._standing(name)
        return self.add(replace(one, pieces=(*one.pieces, *pieces), parts=one.parts | (parts or {})))

    def move(self, name: str, T_root_object: np.ndarray) -> "SceneObjects":
        """Put an object that stands there somewhere else, (4, 4), to stand there."""
        return self.add(replace(self._standing(name), pose=check_pose(name, T_root_object), drift=None))

    def drifting(self, name: str, drift: Drift | None, T_root_object: np.ndarray | None = None) -> "SceneObjects":
        """Have an object move, from where it was at `drift.since`; None: it stands. T_root_object: (4, 4), else as it
        was told before"""
        one = self._standing(name)
        pose = one.pose if T_root_object is None else check_pose(name, T_root_object)
        moved = replace(one, pose=pose, drift=drift)
        moved.moving  # noqa: B018 - raises where it cannot move so
        return self.add(moved)

    def remove(self, *names: str) -> "SceneObjects":
        """Remove objects, standing or carried. What is allowed by their names stays so."""
        for name in names:
            if name not in self.standing and name not in self.carried:
                raise ObstacleError(f"no object is named {shown(name)}; there are: {_listed(self.names)}")
        return self._without(set(names))

    def remove_from(self, source: Source) -> "SceneObjects":
        """Remove all objects, standing or carried, that come from a source."""
        everything = self.standing | self.carried
        return self._without({name for name, one in everything.items() if one.source is source})

    def without_expired(self, now: float) -> "SceneObjects":
        """Without the objects whose life is over; the same value when there are none."""
        gone = {name for name, one in self.standing.items() if one.expires <= now}
        return self._without(gone) if gone else self

    def ending_earlier(self, by: float) -> "SceneObjects":
        """With every life ending, and every movement told of, some seconds earlier."""

        def earlier(one):
            drift = one.drift and one.drift._replace(since=one.drift.since - by)
            return replace(one, expires=one.expires - by, drift=drift)

        return replace(self, standing={name: earlier(one) for name, one in self.standing.items()})

    def attach(
        self,
        name: str,
        link: str,
        T_root_link: np.ndarray,
        touch_links: Iterable[str] = (),
        held_by: Iterable[str] = (),
    ) -> "SceneObjects":
        """Have the link, at (4, 4) T_root_link, carry an object from where it stands. ObstacleError for voxels, and for
        an object that moves."""
        one = self._standing(name)
        if one.drift is not None:
            raise ObstacleError(f"'{name}' moves: say where it stands, with no velocity, before a link takes it up")
        T_link_object = np.linalg.inv(check_pose(name, T_root_link)) @ one.pose
        touched, held = (*touch_links, *held_by), tuple(held_by)
        carried = CarriedObject(name, _solid(one), link, T_link_object, touched, one.source, one.parts, held)
        return self._without({name}).attach_new(carried)

    def attach_new(self, one: CarriedObject) -> "SceneObjects":
        """Let a link carry an object, in place of one of its name; ObstacleError where one of its name stands."""
        if one.name in self.standing:
            raise ObstacleError(f"an object named '{one.name}' stands in the scene: attach it without shapes")
        if not one.name or not one.pieces:
            raise ObstacleError(f"'{one.name}': an attached object needs a name and at least one shape")
        return replace(self, carried=self.carried | {one.name: one})

    def detach(self, name: str, T_root_link: np.ndarray) -> "SceneObjects":
        """Put down a carried object: it stands where its link, at (4, 4) T_root_link, has it."""
        one = self.carried_object(name)
        put = SceneObject(name, one.pieces, check_pose(name, T_root_link) @ one.pose, one.source, parts=one.parts)
        return self._without({name}).add(put)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.standing, *self.carried)

    @cached_property
    def world(self) -> CollisionWorld:
        """What is checked as obstacles: all that is neither carried nor allowed altogether nor in an allowed pair. What
        moves is everywhere where it will be, until it stands."""
        if not self.movers:
            return self.still
        world = self.still.copy()
        for one in self.movers:
            world.add_shapes(one.name, self.standing[one.name].held)
        return world

    @cached_property
    def movers(self) -> tuple[MovingObstacle, ...]:
        """Those of the obstacles that move."""
        return tuple(one.moving for one in self._obstacles if one.moving is not None)

    @cached_property
    def still(self) -> CollisionWorld:
        """Those of the obstacles that stand."""
        world = CollisionWorld()
        for one in self._obstacles:
            if one.moving is None:
                world.add_shapes(one.name, one.placed)
        return world

    @property
    def _obstacles(self):
        return [
            one for name, one in self.standing.items() if name not in self.allowed and name not in self._partly_allowed
        ]

    def robot(self, bare: RobotModel) -> RobotModel:
        """The robot with what it carries and may touch.

        An object that stands and that only some links may touch becomes a shape fixed to the robot's root, since only
        pairs of the robot can be left out. RobotDescriptionError for a link that the robot lacks.
        """
        robot = bare
        for name, one in self.carried.items():
            robot = robot.attach(name, one.pieces, one.link, one.pose, one.touch_links)
        for name in self._partly_allowed:
            one = self.standing[name]
            solid, pose = (_solid(one), one.pose) if one.moving is None else (_solid(one) and one.held, np.eye(4))
            robot = robot.attach(name, solid, bare.root_link, pose)
        known = {*robot.link_names, *robot.attached}
        return robot.allow_collisions(tuple(pair) * (2 // len(pair)) for pair in self.allowed_pairs if pair <= known)

    @property
    def carriage(self) -> tuple:
        """What `robot` depends on, to compare with that of other objects."""
        return self.allowed_pairs, *self.carried.values(), *(self.standing[name] for name in self._partly_allowed)

    @cached_property
    def _partly_allowed(self):
        """Names of standing objects, in order, that some link or carried object may touch."""
        touched = frozenset().union(*self.allowed_pairs)
        return [
            name
            for name in self.standing
            if name in touched
            and name not in self.allowed
            and any(name in pair and not pair <= self.standing.keys() for pair in self.allowed_pairs)
        ]

    def _standing(self, name):
        if name not in self.standing:
            more = f"; it is attached to '{self.carried[name].link}'" if name in self.carried else ""
            raise ObstacleError(
                f"no object {shown(name)} stands in the scene{more}; there are: {_listed(self.standing)}"
            )
        return self.standing[name]

    def carried_object(self, name: str) -> CarriedObject:
        """The object of this name that a link carries; ObstacleError where there is none."""
        if name not in self.carried:
            raise ObstacleError(f"nothing attached is named {shown(name)}; attached: {_listed(self.carried)}")
        return self.carried[name]

    def _without(self, names):
        return replace(
            self,
            standing={name: one for name, one in self.standing.items() if name not in names},
            carried={name: one for name, one in self.carried.items() if name not in names},
        )


def object_of_world(world: CollisionWorld, name: str, source: Source) -> SceneObject:
    """An obstacle of a CollisionWorld as an object of the scene whose frame is the root."""
    return SceneObject(name, world.pieces_of(name), np.eye(4), source)


def _solid(one):
    """The pieces of an object, which must be ConvexShapes."""
    if any(isinstance(piece, Bricks) for piece in one.pieces):
        raise ObstacleError(
            f"'{one.name}' is made of voxels: it can be allowed altogether, but neither carried nor partly"
        )
    return one.pieces


def _listed(names):
    return shortened(", ".join(f"'{name}'" for name in names) or "none")
