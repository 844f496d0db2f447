"""Shapes that a link of the robot carries: a tool, a grasped part.

`attach` appends them, and their self-collision pairs, to the robot's own, in the order of attaching. So whoever takes a
RobotModel takes one that carries things, and `detach` leaves the arrays as they were before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...errors import ObstacleError, RobotDescriptionError, shown
from ..geometry.shapes import ConvexShape, check_pose

Model = TypeVar("Model", bound=Any)  # a RobotModel, whose file imports this one


@dataclass(frozen=True, eq=False)
class Attachment:
    """What a link carries under one name.

    link: its name
    shapes: ConvexShapes posed in the link's frame, metres; named `name`, or `name#0`, `name#1`, ... where several
    touch_links: names of the links that it may touch besides `link`
    """

    link: str
    shapes: tuple[ConvexShape, ...]
    touch_links: tuple[str, ...]


@checked(ObstacleError)
def attach(
    robot: Model,
    name: str,
    shapes: ConvexShape | Iterable[ConvexShape],
    link: Annotated[str, RobotDescriptionError],
    T_link_object: ArrayLike = np.eye(4),
    touch_links: Annotated[Sequence[str], RobotDescriptionError] = (),
) -> Model:
    """A robot whose link carries these shapes: they move with the link and are checked with it. Takes milliseconds.

    name: unique among what is attached and the links; a name that is attached already is replaced
    shapes: posed in the object's frame, metres; as they are convex, cut others up (CollisionWorld.add_mesh does)
    link: any link, also one that is fixed to the root
    T_link_object: (4, 4) pose of the object's frame in the link's, metres
    touch_links: links that it may touch besides `link`

    The object is checked against obstacles if planning joints move the link, and against every shape of the robot that
    moves against it, except those of `link` and touch_links. Two attached objects are checked against each other
    unless they hang on the same link, or on two that do not move against each other.
    Raises ObstacleError for a malformed name, shape or pose, RobotDescriptionError for an unknown link.
    """
    if not name:
        raise ObstacleError("the name of an attached object must be a non-empty text, got ''")
    if name in robot.link_names:
        raise ObstacleError(f"'{name}' is a link of robot '{robot.name}': an attached object needs a name of its own")
    shapes = (shapes,) if isinstance(shapes, ConvexShape) else tuple(shapes)
    if not shapes:
        raise ObstacleError(f"'{name}': shapes must be one ConvexShape or several, got none")
    for known in (link, *touch_links):
        robot.link_index(known)
    if name in robot.attachments:
        robot = detach(robot, name)
    index, T_link_object = robot.link_index(link), check_pose(name, T_link_object)
    frame, T_frame_link = int(robot.link_frame[index]), robot.T_frame_link[index]
    names = [name] if len(shapes) == 1 else [f"{name}#{i}" for i in range(len(shapes))]
    carried = tuple(shape.moved(T_link_object, new) for shape, new in zip(shapes, names, strict=True))
    spared = {link, *touch_links}
    others = [
        i
        for i, (of_link, of_frame) in enumerate(zip(robot.shape_link, robot.shape_frame, strict=True))
        if of_frame != frame and (i >= own_shapes(robot) or robot.link_names[of_link] not in spared)
    ]
    first = len(robot.shapes)
    pairs = [(other, first + i) for i in range(len(carried)) for other in others]
    return replace(
        robot,
        shapes=robot.shapes + tuple(shape.moved(T_frame_link) for shape in carried),
        shape_link=np.concatenate([robot.shape_link, np.full(len(carried), index, np.int32)]),
        shape_frame=np.concatenate([robot.shape_frame, np.full(len(carried), frame, np.int32)]),
        self_collision_pairs=np.concatenate(
            [robot.self_collision_pairs.reshape(-1, 2), np.array(pairs, np.int32).reshape(-1, 2)]
        ),
        attachments=robot.attachments | {name: Attachment(link, carried, tuple(touch_links))},
    )


@checked(ObstacleError)
def detach(robot: Model, name: str) -> Model:
    """The robot without an attached object, as if it had never been attached; ObstacleError when it is not."""
    if name not in robot.attachments:
        attached = ", ".join(f"'{known}'" for known in robot.attachments) or "none"
        raise ObstacleError(f"nothing attached is named {shown(name)}; attached: {attached}")
    keep = ~_shapes_named(robot, name)
    number = np.cumsum(keep) - 1
    pairs = robot.self_collision_pairs
    return replace(
        robot,
        shapes=tuple(shape for shape, kept in zip(robot.shapes, keep, strict=True) if kept),
        shape_link=robot.shape_link[keep],
        shape_frame=robot.shape_frame[keep],
        self_collision_pairs=number[pairs[keep[pairs].all(axis=1)]].astype(np.int32),
        attachments={known: one for known, one in robot.attachments.items() if known != name},
        allowed_pairs=tuple(pair for pair in robot.allowed_pairs if name not in pair),
    )


@checked(RobotDescriptionError)
def allow_collisions(robot: Model, pairs: Iterable[tuple[str, str]]) -> Model:
    """A robot whose given pairs of links or attached objects (by name) are not checked against each other.

    What is attached afterwards is checked as `attach` says. Raises RobotDescriptionError for an unknown name.
    """
    pairs = tuple(pairs)
    allowed = [[_shapes_named(robot, name) for name in pair] for pair in pairs]
    if not allowed:
        return robot
    a, b = robot.self_collision_pairs.T
    may_touch = np.any([(one[a] & other[b]) | (one[b] & other[a]) for one, other in allowed], axis=0)
    return replace(
        robot,
        self_collision_pairs=robot.self_collision_pairs[~may_touch],
        allowed_pairs=tuple(dict.fromkeys([*robot.allowed_pairs, *pairs])),
    )


def own_shapes(robot: Any) -> int:
    """How many of the robot's shapes are its own; those of what it carries follow."""
    return len(robot.shapes) - sum(len(one.shapes) for one in robot.attachments.values())


def shapes_of(robot: Any, name: str) -> range:
    """Which of robot.shapes an attached object has."""
    known = list(robot.attachments)
    before = known[: known.index(name)]
    first = own_shapes(robot) + sum(len(robot.attachments[other].shapes) for other in before)
    return range(first, first + len(robot.attachments[name].shapes))


def _shapes_named(robot, name):
    """(S,) bool, the shapes of an attached object or of a link itself."""
    chosen = np.zeros(len(robot.shapes), bool)
    if name in robot.attachments:
        chosen[shapes_of(robot, name)] = True
    else:
        own = own_shapes(robot)
        chosen[:own] = robot.shape_link[:own] == robot.link_index(name)
    return chosen
