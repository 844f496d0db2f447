"""moveit_msgs/PlanningScene and RobotState: applied to the node's one scene and its joints, and written from them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

import numpy as np
from moveit_msgs.msg import (
    AllowedCollisionEntry,
    AllowedCollisionMatrix,
    AttachedCollisionObject,
    CollisionObject,
    LinkPadding,
    ObjectColor,
    PlanningScene,
    PlanningSceneComponents,
    RobotState,
)
from sensor_msgs.msg import MultiDOFJointState

from ...arm import RobotModel
from ..arm import codes
from ..arm.cloud_topics import octomap_bricks
from ..arm.conversions import joint_positions, joint_state, only_joints, outside_frame
from ..arm.scene_objects import SceneObject, SceneObjects, Source
from ..common.request_error import RequestError
from .objects import OCTOMAP, attach, carried_named, change, change_attached, object_message
from .reference import Beside, Reference
from .shapes import read_pose, read_transform
from .standing import check_standing, standing

EVERYTHING = 0xFFFFFFFF
STAYING = Source.FILE, Source.OTHER_ARM  # in a scene that is no diff
STATE = "joint_state.name", "joint_state.position", "multi_dof_joint_state.joint_names", "attached_collision_objects"
MATRIX = "allowed_collision_matrix.entry_names", "allowed_collision_matrix.default_entry_names"
OTHERS = "name", "fixed_frame_transforms", "link_padding", "link_scale", "object_colors"
WORLD = "world.collision_objects", "world.octomap.octomap.id", "world.octomap.octomap.data"
SCENE = *MATRIX, *OTHERS, *WORLD, *(f"robot_state.{name}" for name in STATE)


def is_empty(message: PlanningScene | RobotState, fields: tuple[str, ...] = SCENE) -> bool:
    """Does a message say nothing in these fields? As in MoveIt such a scene changes nothing, be it a diff or not."""
    return not any(map(len, attrgetter(*fields)(message)))


def apply(message: PlanningScene, before: Reference) -> Reference:
    """What a PlanningScene makes of objects, positions and what is beside them.

    A scene that is no diff keeps only objects of the scene file and other arms. Nothing is changed in place;
    ObstacleError or RequestError names what is wrong.
    """
    robot, frames, objects, beside = before.robot, before.frames, before.objects, before.beside
    if is_empty(message):
        return before
    if message.robot_model_name not in ("", robot.name):
        text = f"the planning scene is for robot '{message.robot_model_name}'; this node plans robot '{robot.name}'"
        raise RequestError(codes.INVALID_ROBOT_STATE, text)
    if not message.is_diff:
        kept = {name: one for name, one in objects.standing.items() if one.source in STAYING}
        objects, beside = SceneObjects(standing=kept), Beside()
    positions = read_positions(message.robot_state, robot, before.positions, "the planning scene's robot_state")
    beside = replace(beside, name=message.name or beside.name, frames=_frames(message, robot, frames, beside))
    reference = Reference(robot, frames, objects, positions, beside)
    check_standing(message.robot_state.multi_dof_joint_state, reference, "the planning scene's robot_state")
    for one in message.world.collision_objects:
        reference = reference.with_objects(change(one, reference))
    octomap = message.world.octomap.octomap
    if octomap.data:
        reference = reference.with_objects(reference.objects.add(_octomap(message.world.octomap, reference)))
    elif octomap.id and OCTOMAP in reference.objects.standing:  # as in MoveIt: one without data clears it
        reference = reference.with_objects(reference.objects.remove(OCTOMAP))
    if not (message.robot_state.is_diff or message.is_diff):
        reference = reference.with_objects(reference.objects.remove(*reference.objects.carried))
    for one in message.robot_state.attached_collision_objects:
        reference = reference.with_objects(change_attached(one, reference))
    objects = _allowed(message.allowed_collision_matrix, robot, reference.objects)
    colours = beside.colours | {one.id: one.color for one in message.object_colors}
    beside = replace(beside, padding=_padding(message, robot, beside.padding), colours=colours)
    return replace(reference, objects=objects, beside=beside)


def scene_message(reference: Reference, components: int = EVERYTHING) -> PlanningScene:
    """What `components` of PlanningSceneComponents asks for."""
    asked, message = PlanningSceneComponents, PlanningScene()
    robot, objects, beside = reference.robot, reference.objects, reference.beside
    if components & asked.SCENE_SETTINGS:
        message.name, message.robot_model_name = beside.name, robot.name
    if components & asked.ROBOT_STATE or components & asked.ROBOT_STATE_ATTACHED_OBJECTS:
        carried = objects if components & asked.ROBOT_STATE_ATTACHED_OBJECTS else SceneObjects()
        message.robot_state = state_message(reference, reference.positions, carried)
        if not components & asked.ROBOT_STATE:
            message.robot_state.joint_state.name, message.robot_state.joint_state.position = [], []
            message.robot_state.multi_dof_joint_state = MultiDOFJointState()
    geometry = bool(components & asked.WORLD_OBJECT_GEOMETRY)
    if geometry or components & asked.WORLD_OBJECT_NAMES:
        message.world.collision_objects = [
            object_message(one, robot.root_link, geometry) for one in objects.standing.values()
        ]
    if components & asked.ALLOWED_COLLISION_MATRIX:
        message.allowed_collision_matrix = allowed_message(robot, objects)
    if components & asked.LINK_PADDING_AND_SCALING:
        message.link_padding = [LinkPadding(link_name=link, padding=m) for link, m in beside.padding.items()]
    if components & asked.OBJECT_COLORS:
        message.object_colors = [ObjectColor(id=name, color=colour) for name, colour in beside.colours.items()]
    return message


def allowed_message(robot: RobotModel, objects: SceneObjects) -> AllowedCollisionMatrix:
    """The pairs of links and objects that may touch, as a matrix of those that are in some pair."""
    pairs = {frozenset(pair[:2]) for pair in robot.disabled_pairs} | set(objects.allowed_pairs)
    pairs |= {frozenset((one.name, link)) for one in objects.carried.values() for link in (one.link, *one.touch_links)}
    names = sorted(frozenset().union(*pairs))
    return AllowedCollisionMatrix(
        entry_names=names,
        entry_values=[AllowedCollisionEntry(enabled=[frozenset((a, b)) in pairs for b in names]) for a in names],
        default_entry_names=sorted(objects.allowed),
        default_entry_values=[True] * len(objects.allowed),
    )


def _octomap(message, reference):
    """The octomap of a scene as an object of voxels, in place of the one before."""
    what = f"object '{OCTOMAP}'"
    T_root_map = reference.frame(message.header.frame_id, what) @ read_pose(message.origin, OCTOMAP)
    return SceneObject(OCTOMAP, (octomap_bricks(OCTOMAP, message.octomap, np.eye(4)),), T_root_map, Source.MOVEIT)


def _frames(message, robot, frames, beside):
    """{frame: (4, 4) T_root_frame} with the message's fixed_frame_transforms."""
    known, outside = dict(beside.frames), outside_frame(robot)
    for one in message.fixed_frame_transforms:
        child = one.child_frame_id.removeprefix("/")
        what = f"fixed_frame_transforms, '{child}',"
        if child in frames or child in robot.link_names or child == outside:
            continue
        reference = Reference(robot, frames, SceneObjects(), {}, Beside(frames=known))
        known[child] = reference.frame(one.header.frame_id, what) @ read_transform(one.transform, child)
    return known


def _padding(message, robot, before):
    for scaled in message.link_scale:
        if not abs(scaled.scale - 1) <= 1e-9:
            text = f"link_scale of '{scaled.link_name}' is {scaled.scale}; allowed: 1. Use link_padding"
            raise RequestError(codes.FAILURE, text)
    padding = dict(before)
    for one in message.link_padding:
        if one.link_name not in robot.link_names:
            text = f"link_padding names the link '{one.link_name}', which robot '{robot.name}' lacks"
            raise RequestError(codes.INVALID_LINK_NAME, text)
        if not 0 <= one.padding <= 1:
            text = f"link_padding of '{one.link_name}' is {one.padding} m; allowed: from 0 to 1 m"
            raise RequestError(codes.FAILURE, text)
        padding[one.link_name] = one.padding
    return padding


def _allowed(matrix, robot, objects):
    """Objects with the pairs that a matrix allows in place of those before; an empty matrix changes nothing."""
    names, defaults = list(matrix.entry_names), list(matrix.default_entry_names)
    rows, values = [list(entry.enabled) for entry in matrix.entry_values], matrix.default_entry_values
    if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
        raise _wrong_matrix(f"has {len(names)} names, so it needs {len(names)} rows of as many")
    if len(defaults) != len(values):
        raise _wrong_matrix(f"has {len(defaults)} default names but {len(values)} values")
    if not names and not defaults:
        return objects
    links, by_default = set(robot.link_names), {name for name, value in zip(defaults, values) if value}
    for link in sorted(links & by_default):
        allowed = "allowed: pairs of names, and defaults of objects"
        raise _wrong_matrix(f"lets everything touch link '{link}' by default; {allowed}")
    known = {frozenset(pair[:2]) for pair in robot.disabled_pairs}
    pairs = frozenset(
        frozenset((names[i], names[j]))
        for i, j in combinations(range(len(names)), 2)
        if rows[i][j] and rows[j][i] and frozenset((names[i], names[j])) not in known
    )
    touching = {name: {other for pair in pairs if name in pair for other in pair} for name in objects.standing}
    whole = frozenset(name for name, others in touching.items() if name in by_default or links <= others)
    return replace(objects, allowed_pairs=frozenset(pair for pair in pairs if not pair & whole), allowed=whole)


def _wrong_matrix(text):
    return RequestError(codes.FAILURE, f"the allowed collision matrix {text}")


def read_positions(message: RobotState, robot: RobotModel, known: Mapping[str, float], what: str) -> dict[str, float]:
    """{joint: position} of a RobotState, over those that are known; joints that mimic another are passed over.

    RequestError with INVALID_ROBOT_STATE.
    """
    given = joint_positions(message.joint_state, what, codes.INVALID_ROBOT_STATE)
    allowed = sorted({*robot.joint_names, *robot.other_joints, *robot.mimic_joints})
    only_joints(allowed, given, what, codes.INVALID_ROBOT_STATE)
    return dict(known) | {name: value for name, value in given.items() if name not in robot.mimic_joints}


def read_carried(message: RobotState, reference: Reference) -> SceneObjects:
    """The objects of the reference with what a RobotState attaches.

    A state that is no diff, and not empty, carries nothing else: as in MoveIt, what was carried before vanishes.
    """
    objects = reference.objects
    if not message.is_diff and not is_empty(message, STATE):
        objects = objects.remove(*objects.carried)
    for one in message.attached_collision_objects:
        if one.object.operation == CollisionObject.REMOVE:
            objects = objects.remove(*carried_named(one, objects))
        else:
            objects = attach(one, reference.with_objects(objects))
    return objects


def complete(robot: RobotModel, positions: Mapping[str, float], what: str) -> np.ndarray:
    """(dof,) of {joint: position}; RequestError with ROBOT_STATE_STALE or INVALID_ROBOT_STATE where one is missing."""
    missing = [name for name in robot.joint_names if name not in positions]
    if missing:
        code = codes.ROBOT_STATE_STALE if len(missing) == robot.dof else codes.INVALID_ROBOT_STATE
        text = f"{what} gives no position of joint '{missing[0]}', and joint_states has brought none lately"
        raise RequestError(code, text)
    return np.array([positions[name] for name in robot.joint_names])


def state_message(reference: Reference, positions: Mapping[str, float], objects: SceneObjects) -> RobotState:
    """RobotState of {joint: position}, with what the objects say that links carry, and where the root stands."""
    robot = reference.robot
    names = [name for name in (*robot.joint_names, *robot.other_joints) if name in positions]
    state = joint_state(names, [positions[name] for name in names])
    state.header.frame_id = robot.root_link
    carried = [
        AttachedCollisionObject(
            link_name=one.link, touch_links=list(one.touch_links), object=object_message(one, one.link)
        )
        for one in objects.carried.values()
    ]
    return RobotState(joint_state=state, multi_dof_joint_state=standing(reference), attached_collision_objects=carried)
