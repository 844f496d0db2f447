"""The node's knowledge of the world: robot, objects and the checker that joins them.

Methods run on the worker's threads, and what changes the scene runs alone. Requests that are answered beside each other
hold `lock` until each has a checker of its own. A change is put in place when it is complete: a refused robot, scene
file or message leaves all as it was.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker, RobotModel, load_urdf
from ...arm.collision.scene_file import fixed_frames, load_scene
from ...arm.control.spline import first_contact
from ...arm.geometry.bricks import Bricks
from ...errors import ObstacleError, shortened
from ..common.request_error import RequestError, error_text
from ..common.ros import Transforms
from ..common.worker import device_of_seat, seat
from . import codes
from .conversions import Outside, RobotFrames, outside_frame
from .marker_objects import check_markers, check_obstacles, marker_object, obstacle_name
from .move_run import MotionUnderWay
from .parameters import ArmParameters
from .scene_objects import SceneObject, SceneObjects, Source, object_of_world

MOST_ROBOTS = 8  # of queries with a gripper or a load of their own, kept for the next ones
AS_MEASURED: Mapping[str, float] = MappingProxyType({})


class PlanningScene:
    """Robot, objects and checker.

    robot: with all that it carries, joints that are not planned (a gripper) where joint_states have them; None while
        there is none. Queries that have them elsewhere get a robot of their own
    objects: what stands around, what is carried, what may touch; changed by `take`
    frames: that messages may name; "" is the root
    refused: why the description that came last is not planned with, None when it is or none came
    warm_planners: {(planner, device)} that are compiled for the robot
    lock: of requests that are answered beside each other
    """

    def __init__(self, values: ArmParameters, transforms: Transforms | None = None) -> None:
        self.values = values
        self.robot: RobotModel | None = None
        self.refused: Exception | None = None
        self.objects = SceneObjects()
        self.frames = RobotFrames({}, "", transforms)
        self.warm_planners: set[tuple[str, str]] = set()
        self._described: Any = None  # a RobotModel that carries nothing, as it was loaded
        self._bare: Any = None  # one that carries nothing, its other joints at `_fixed`
        self._robots: dict[tuple, RobotModel] = {}  # of queries, by their other joints and what is carried
        self._transforms, self._outside = transforms, Outside()
        self._urdf = ""
        self._fixed: dict[str, float] = {}  # joints that are not planned
        # by seat and whether the robot is the scene's: what it was made for, and it
        self._checkers: dict[tuple[int, bool], tuple[tuple, CollisionChecker]] = {}
        self.lock = threading.RLock()

    def take(self, objects: SceneObjects) -> None:
        """Put other objects in place of those that there are. RobotDescriptionError or ObstacleError when the robot
        cannot carry what it should."""
        ours = [one for one in objects.standing.values() if one.source != Source.FILE]
        check_obstacles(len(ours), sum(one.triangles for one in ours), self.values)
        self._put(objects)

    def load_robot(self, urdf: str, now: float) -> None:
        """Take a robot (URDF text, or the path of its file) and its scene file."""
        if urdf == self._urdf:
            return
        values, bare = self.values, read_robot(urdf, self.values)
        objects = self.objects.remove_from(Source.FILE)
        if values.scene_file:
            world = load_scene(values.scene_file, fixed_frames(bare))
            objects = objects.add(*(object_of_world(world, name, Source.FILE) for name in world.names))
        outside = Outside(outside_frame(bare))
        frames = self.frames_of(bare, outside)
        self.robot = self._carrying(bare, objects)
        self._described, self._bare, self.frames, self.objects, self._outside = bare, bare, frames, objects, outside
        self._fixed = {name: float(np.clip(0.0, *limits)) for name, limits in bare.other_joints.items()}
        self._urdf, self._robots, self._checkers, self.warm_planners = urdf, {}, {}, set()
        self.forget_expired(now)

    def stands(self, positions: Mapping[str, float]) -> bool:
        """Are the joints that are not planned where {joint: rad or m} says? From any thread."""
        return self.robot is None or self._others_at(positions) is self._fixed

    def follow(self, positions: Mapping[str, float]) -> None:
        """Place joints that are not planned (a gripper) where joint_states have them."""
        fixed = self._others_at(positions)
        if self._described is None or fixed is self._fixed:
            return
        bare = self._described.with_other_joints(fixed)
        self.frames, self.robot = self.frames_of(bare), self._carrying(bare, self.objects)
        self._bare, self._fixed = bare, fixed

    def robot_among(self, objects: SceneObjects, positions: Mapping[str, float] = AS_MEASURED) -> RobotModel:
        """The robot of a query: it carries what the objects say, and has joints that are not planned at {joint: rad or
        m}, by default where joint_states have them. The scene's own robot where that is so.

        positions: brought into the limits; joints that the robot lacks are ignored
        """
        robot, fixed = self.require_robot(), self._others_at(positions)
        if fixed is self._fixed and (objects is self.objects or objects.carriage == self.objects.carriage):
            return robot
        key = tuple(fixed.items()), objects.carriage
        robot = self._robots.pop(key, None)
        if robot is None:
            bare = self._bare if fixed is self._fixed else self._described.with_other_joints(fixed)
            robot = objects.robot(bare)
        self._robots = dict([*self._robots.items()][1 - MOST_ROBOTS :]) | {key: robot}
        return robot

    def frames_of(self, robot: RobotModel, outside: Outside | None = None) -> RobotFrames:
        """The frames that messages may name, as a robot has them. outside: of another description than the scene's"""
        if robot is self.robot:
            return self.frames
        fixed, prefix = fixed_frames(robot), self.values.frame_prefix
        known = {prefix + name: T for name, T in fixed.items()} | fixed | {"": np.eye(4)}
        if self.values.world_frame:
            known[self.values.world_frame] = np.eye(4)
        moved = robot.tree.moved_links if robot.tree else frozenset()
        moved |= {prefix + name for name in moved}
        return RobotFrames(known, prefix + robot.root_link, self._transforms, moved, outside or self._outside)

    def change_obstacles(self, message: MarkerArray, now: float) -> None:
        """Apply a MarkerArray of the topic (ADD, MODIFY, DELETE, DELETEALL), all of it or nothing.

        DELETEALL removes the markers of its namespace, or all when it names none, but no objects of other sources. A
        marker whose name a link carries is ignored, since who sees the object still reports it.
        now: seconds on the node's clock, from which lifetimes count
        """
        standing, carried = dict(self.objects.standing), self.objects.carried
        for marker in message.markers:
            name = obstacle_name(marker)
            if marker.action == Marker.ADD:
                if name not in carried:
                    standing[name] = marker_object(marker, self.frames, now)
            elif marker.action in (Marker.DELETE, Marker.DELETEALL):
                standing = {known: one for known, one in standing.items() if not _deletes(marker, one)}
            else:
                raise ObstacleError(f"'{name}': unknown marker action {marker.action}")
        self.take(replace(self.objects, standing=standing))

    def forget_expired(self, now: float) -> None:
        alive = self.objects.without_expired(now)
        if alive is not self.objects:
            self._put(alive)

    def clock_jumped_back(self, by: float) -> None:
        """Keep what is left of the lives of objects when the node's clock has gone back by some seconds."""
        self._put(self.objects.ending_earlier(by))

    def objects_for(self, request: PlanMotion.Request) -> SceneObjects:
        """The objects of one PlanMotion request: the scene's and its own. What links carry, they always carry."""
        objects = replace(self.objects, standing={}) if request.ignore_scene else self.objects
        if not request.obstacles.markers:
            return objects
        check_markers(request.obstacles.markers, self.values)
        for marker in request.obstacles.markers:
            if marker.action != Marker.ADD:
                raise ObstacleError(
                    f"'{obstacle_name(marker)}': a request can only add obstacles, "
                    f"but its marker action is {marker.action}"
                )
        return objects.add(*(marker_object(marker, self.frames, 0.0) for marker in request.obstacles.markers))

    def checker_for(
        self, objects: SceneObjects, margin: float = 0.0, positions: Mapping[str, float] = AS_MEASURED
    ) -> CollisionChecker:
        """CollisionChecker of `robot_among` the objects at the positions; `.robot` and `.world` are those.

        A thread of the worker keeps its checker, and so what it has packed of obstacles that stay, and gets another one
        only for another robot or device; queries with robots of their own have a second one.
        """
        robot, device, motion = self.robot_among(objects, positions), self.values.device, self.values.motion_check
        made_for, key = (device, motion), (seat(), robot is self.robot)
        before, checker = self._checkers.get(key, (None, None))
        if checker is None or before != made_for or checker.robot is not robot:
            checker = CollisionChecker(robot, objects.world, device_of_seat(device), motion, margin)
            self._checkers[key] = made_for, checker
        checker.world, checker.margin = objects.world, margin
        return checker

    def see(self, seen: SceneObject) -> None:
        """Take an object that a sensor sees in place of the one of its name, and pack it for the known checkers,
        so that no request waits for it. An object without voxels goes."""
        objects = self.objects
        if any(not isinstance(piece, Bricks) or len(piece) for piece in seen.pieces):
            objects = objects.add(seen)
        elif seen.name in objects.standing:
            objects = objects.remove(seen.name)
        self.take(objects)
        for _, checker in self._checkers.values():
            if checker.robot is self.robot:
                checker.world = self.objects.world
                checker.prepare()

    def contact_ahead(self, motion: MotionUnderWay, phase: float) -> str:
        """What a motion meets after `phase` seconds, "" when all of it is proven free, which is not checked again in
        the same state of the scene."""
        state = self.objects, self.robot  # replaced, never changed, when the scene changes
        if all(now is before for now, before in zip(state, motion.scene, strict=True)):
            return ""
        if self.require_robot().tree is not motion.robot.tree:
            return "another robot was described"
        checker = self.checker_for(self.objects, motion.margin)
        met = first_contact(checker, motion.curve.remaining_path(phase))
        motion.scene = motion.scene if met else state
        return met

    def require_robot(self) -> RobotModel:
        """The robot; RequestError while there is none."""
        if self.robot is None:
            if self.refused:
                text = f"the robot_description was refused: {error_text(self.refused)}"
                raise RequestError(codes.code_of(self.refused), text)
            raise RequestError(
                codes.COLLISION_CHECKING_UNAVAILABLE,
                "there is no robot yet: publish its URDF on robot_description, or set robot_description_file",
            )
        return self.robot

    def _put(self, objects):
        self.robot, self.objects = self._carrying(self._bare, objects), objects

    def _carrying(self, bare, objects):
        """The robot with what it carries; the same one as before where that is the same."""
        if bare is None:
            return None
        same = bare is self._bare and objects.carriage == self.objects.carriage
        return self.robot if same and self.robot is not None else objects.robot(bare)

    def _others_at(self, positions):
        """{joint: rad or m} of the joints that are not planned; `_fixed` itself where none is elsewhere."""
        known, joints = self._fixed, self.require_robot().other_joints
        fixed = known | {
            name: float(np.clip(positions[name], *limits)) for name, limits in joints.items() if name in positions
        }
        tolerance = self.values.fixed_joint_tolerance
        return fixed if any(abs(fixed[name] - known.get(name, np.inf)) > tolerance for name in fixed) else known


def read_robot(urdf: str, values: Any) -> RobotModel:
    """The robot of a URDF, text or path, as the parameters srdf_file, package_dirs, joints, group, tip_link say."""
    folders, joints, group = values.package_dirs or (), values.joints or None, values.group or None
    robot = load_urdf(urdf, srdf=values.srdf_file or None, package_dirs=folders, joints=joints, group=group)
    if values.tip_link and values.tip_link not in robot.link_names:
        links = shortened(", ".join(robot.link_names))
        text = f"parameter tip_link is '{values.tip_link}', which robot '{robot.name}' lacks; its links: {links}"
        raise RequestError(codes.INVALID_LINK_NAME, text)
    return robot


def _deletes(marker, one):
    if one.source != Source.MARKERS:
        return False
    return one.name == obstacle_name(marker) if marker.action == Marker.DELETE else marker.ns in ("", one.group)
