"""The node's knowledge of the world: robot, objects and the checker that joins them.

Methods run on the worker's threads, and what changes the scene runs alone. Requests that are answered beside each other
hold `lock` until each has a checker of its own. A change is put in place when it is complete: a refused robot, scene
file or message leaves all as it was.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker, RobotModel, load_urdf
from ...arm.collision.scene_file import fixed_frames, load_scene
from ...arm.control import moving
from ...arm.control.spline import first_contact
from ...arm.geometry.bricks import Bricks
from ...arm.urdf.joint_limits import PlanningLimits
from ...arm.urdf.limits import NO_LIMITS
from ...errors import ObstacleError, RobotDescriptionError, error_text, shortened
from ..common.request_error import RequestError
from ..common.ros import Transforms
from ..common.worker import device_of_seat, seat
from . import codes
from .conversions import Outside, RobotFrames, outside_frame
from .in_hands import grips, torn_by
from .marker_objects import check_markers, check_obstacles, marker_object, obstacle_name
from .move_run import MotionUnderWay
from .moving_obstacles import with_velocities
from .parameters import ArmParameters
from .robot_views import RobotView
from .scene_objects import SceneObject, SceneObjects, Source, object_of_world

MOST_ROBOTS = 8  # of queries with a gripper or a load of their own, kept for the next ones
AS_MEASURED: Mapping[str, float] = MappingProxyType({})


class PlanningScene:
    """Robot, objects and checker.

    limits: beside the URDF's, of the files and parameters that MoveIt's users have; of the next robot
    robot: as the parameters have it planned, with all that it carries, joints that are not planned (a gripper) where
        joint_states have them; None while there is none. Queries that have them elsewhere get a robot of their own, and
        so do those for another group of the SRDF. Methods name groups as `group_named` does: "" is the robot's own
    objects: what stands around, what is carried, what may touch; changed by `take`
    frames: that messages may name; "" is the root
    refused: why the description that came last is not planned with, None when it is or none came
    warm_planners: {(planner, device, group)} that are compiled
    lock: of requests that are answered beside each other
    """

    def __init__(self, values: ArmParameters, transforms: Transforms | None = None) -> None:
        self.values, self.limits = values, NO_LIMITS
        self.refused: Exception | None = None
        self.objects = SceneObjects()
        self.frames = RobotFrames({}, "", transforms)
        self.warm_planners: set[tuple[str, str, str]] = set()
        self._view: Any = None  # the RobotView of `robot`
        self._groups: dict[str, RobotView] = {}  # of other groups, as the last query for each had it
        self._robots: dict[tuple, RobotModel] = {}  # of queries, by their other joints and what is carried
        self._transforms, self._outside = transforms, Outside()
        self._source = "", ""
        # by seat, group and whether the robot is the scene's: what it was made for, and it
        self._checkers: dict[tuple[int, str, bool], tuple[tuple, CollisionChecker]] = {}
        self.lock = threading.RLock()

    @property
    def robot(self) -> RobotModel | None:
        return self._view.robot if self._view else None

    def take(self, objects: SceneObjects) -> None:
        """Put other objects in place of those that there are. RobotDescriptionError or ObstacleError when the robot
        cannot carry what it should."""
        ours = [one for one in objects.standing.values() if one.source != Source.FILE]
        check_obstacles(len(ours), sum(one.triangles for one in ours), self.values)
        self._put(objects)

    def load_robot(self, urdf: str, now: float, srdf: str = "") -> None:
        """Take a robot (URDF text, or the path of its file) and its scene file. srdf: the text of its SRDF where the
        parameters give none"""
        if (urdf, srdf) == self._source:
            return
        values, bare = self.values, read_robot(urdf, self.values, srdf, self.limits)
        objects = self.objects.remove_from(Source.FILE)
        if values.scene_file:
            world = load_scene(values.scene_file, fixed_frames(bare))
            objects = objects.add(*(object_of_world(world, name, Source.FILE) for name in world.names))
        outside = Outside(outside_frame(bare))
        frames = self.frames_of(bare, outside)
        self._view = RobotView(bare, objects)
        self.frames, self.objects, self._outside, self._source = frames, objects, outside, (urdf, srdf)
        self._groups, self._robots, self._checkers, self.warm_planners = {}, {}, {}, set()
        self.forget_expired(now)

    def group_named(self, name: str) -> str:
        """The group that a request names, "" for the one that the parameters choose: that of parameter `group`, or else
        any whose joints are those that are planned. Without an SRDF there are no groups, and any name stands for these.
        RequestError with INVALID_GROUP_NAME where it cannot be planned."""
        robot, own = self.require_robot(), self.values.group
        if not name or not robot.groups or name == own:
            return ""
        if not own and set(robot.groups.get(name, ())) == set(robot.joint_names):
            return ""
        if name not in self._groups:
            try:
                self._groups[name] = RobotView(self._view.described.of_group(name), self.objects)
            except RobotDescriptionError as error:
                known = f"; groups of the SRDF: {shortened(', '.join(robot.groups))}" if name in robot.groups else ""
                text = f"group '{name}' cannot be planned: {error}{known}"
                raise RequestError(codes.INVALID_GROUP_NAME, text) from error
        return name

    def group_of_joints(self, names: Collection[str]) -> str:
        """The group whose joints these are, those that mimic others aside; the robot's own where none has them."""
        robot = self.require_robot()
        wanted = set(names) - set(robot.mimic_joints)
        if wanted == set(robot.joint_names):
            return ""
        return self.group_named(next((name for name, joints in robot.groups.items() if set(joints) == wanted), ""))

    def described(self, group: str = "") -> RobotModel:
        """The robot as one of its groups is planned, as it was loaded, which carries nothing."""
        self.require_robot()
        return self._view_of(group).described

    def in_several_hands(self, group: str = "") -> bool:
        """Are there objects that joints of a group could tear from a hand? Motions keep them there."""
        return self.robot is not None and bool(grips(self.objects, self.described(group)))

    def stands(self, positions: Mapping[str, float]) -> bool:
        """Are the joints that are not planned where {joint: rad or m} says? From any thread."""
        view = self._view
        return view is None or view.others_at(positions, self.values.fixed_joint_tolerance) is view.fixed

    def follow(self, positions: Mapping[str, float]) -> None:
        """Place joints that are not planned (a gripper) where joint_states have them."""
        if self.stands(positions):
            return
        view = self._view
        view.put(view.others_at(positions, self.values.fixed_joint_tolerance), self.objects)
        self.frames = self._frames_of(view.robot, self._outside)

    def robot_among(
        self, objects: SceneObjects, positions: Mapping[str, float] = AS_MEASURED, group: str = ""
    ) -> RobotModel:
        """The robot of a query: it carries what the objects say, and has joints that are not planned at {joint: rad or
        m}, by default where joint_states have them. The scene's own robot where that is so.

        positions: brought into the limits; joints that the robot lacks are ignored. For another group it must have what
            the scene's robot plans, else RequestError
        """
        self.require_robot()
        view = self._view_of(group)
        fixed = view.others_at(positions, self.values.fixed_joint_tolerance)
        if group:
            self._require_others(group, positions)
            view.put(fixed, objects)
        if view.is_it(fixed, objects):
            return view.robot
        key = tuple(fixed.items()), objects.carriage
        robot = self._robots.pop(key, None)
        if robot is None:
            robot = objects.robot(view.with_others(fixed))
        self._robots = dict([*self._robots.items()][1 - MOST_ROBOTS :]) | {key: robot}
        return robot

    def frames_of(self, robot: RobotModel, outside: Outside | None = None) -> RobotFrames:
        """The frames that messages may name, as a robot has them. outside: of another description than the scene's"""
        return self.frames if robot is self.robot else self._frames_of(robot, outside or self._outside)

    def _frames_of(self, robot, outside):
        fixed, prefix = fixed_frames(robot), self.values.frame_prefix
        known = {prefix + name: T for name, T in fixed.items()} | fixed | {"": np.eye(4)}
        if self.values.world_frame:
            known[self.values.world_frame] = np.eye(4)
        moved = robot.tree.moved_links if robot.tree else frozenset()
        moved |= {prefix + name for name in moved}
        return RobotFrames(known, prefix + robot.root_link, self._transforms, moved, outside)

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

    def move_obstacles(self, message: Any, now: float) -> None:
        """Apply a MovingObstacles message of the topic, all of it or nothing. now: seconds on the node's clock"""
        self.take(with_velocities(self.objects, message, self.frames, now, self.values.moving_horizon_s))

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
        self, objects: SceneObjects, margin: float = 0.0, positions: Mapping[str, float] = AS_MEASURED, group: str = ""
    ) -> CollisionChecker:
        """CollisionChecker of `robot_among` the objects at the positions; `.robot` and `.world` are those.

        A thread of the worker keeps its checker, and so what it has packed of obstacles that stay, and gets another one
        only for another robot or device; queries with robots of their own have a second one, and each group has one.
        """
        robot, device, motion = (
            self.robot_among(objects, positions, group),
            self.values.device,
            self.values.motion_check,
        )
        made_for, key = (device, motion), (seat(), group, robot is self.robot)
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

    def contact_ahead(
        self, motion: MotionUnderWay, phase: float, positions: Mapping[str, float], zero: float = 0.0
    ) -> str:
        """What a motion meets after `phase` seconds, "" when all of it is proven free, which is not checked again in
        the same state of the scene while the motion is as late as it was. positions: {joint: rad or m} as measured
        zero: seconds on the node's clock when the motion's own is at 0, for what moves"""
        self.require_robot()
        views = {"": self._view} | self._groups
        group = next((name for name, view in views.items() if view.described.tree is motion.robot.tree), None)
        if group is None:
            return "another robot was described"
        others = positions if group else AS_MEASURED
        # replaced, never changed, when the scene changes
        state = self.objects, self.robot_among(self.objects, others, group)
        same = all(now is before for now, before in zip(state, motion.scene, strict=True))
        movers, slack = self.objects.movers, self.values.moving_slack_s
        on_time = not movers or (motion.judged is not None and abs(zero - motion.judged) <= slack / 2)
        if same and on_time:
            return ""
        checker = self.checker_for(self.objects, motion.margin, others, group)
        checker.world, met = self.objects.still, ""
        if not same:
            met = torn_by(motion.curve, phase, self.objects, checker, self.values)
        if not same and not met:
            met = first_contact(checker, motion.curve.remaining_path(phase))
        met = met or moving.first_contact(checker, motion.curve, movers, zero, phase, slack)
        if not met:
            motion.scene, motion.judged = state, zero
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
        if self._view is not None:
            self._view.put(self._view.fixed, objects)
        self.objects = objects

    def _view_of(self, group):
        return self._groups[group] if group else self._view

    def _require_others(self, group, positions):
        """RequestError where nobody knows where joints are that carry, or may meet, those of another group."""
        for joint in self._view.described.joint_names:
            if joint not in positions and joint in self._groups[group].described.other_joints:
                text = f"group '{group}' is planned where the other joints are, but the position of joint '{joint}'"
                raise RequestError(
                    codes.ROBOT_STATE_STALE, f"{text} is not known: joint_states has brought none lately"
                )


def read_robot(urdf: str, values: Any, srdf: str = "", limits: PlanningLimits = NO_LIMITS) -> RobotModel:
    """The robot of a URDF, text or path, as the parameters srdf_file, robot_description_semantic, package_dirs, joints,
    group, tip_link say. srdf: the text of its SRDF where they give none"""
    folders, joints, group = values.package_dirs or (), values.joints or None, values.group or None
    srdf = values.srdf_file or values.robot_description_semantic or srdf
    robot = load_urdf(urdf, srdf=srdf or None, package_dirs=folders, joints=joints, group=group, limits=limits)
    if not values.tip_link:
        return robot
    if values.tip_link not in robot.link_names:
        links = shortened(", ".join(robot.link_names))
        text = f"parameter tip_link is '{values.tip_link}', which robot '{robot.name}' lacks; its links: {links}"
        raise RequestError(codes.INVALID_LINK_NAME, text)
    return replace(robot, tip_link=values.tip_link, tip_reason="parameter tip_link")


def _deletes(marker, one):
    if one.source != Source.MARKERS:
        return False
    return one.name == obstacle_name(marker) if marker.action == Marker.DELETE else marker.ns in ("", one.group)
