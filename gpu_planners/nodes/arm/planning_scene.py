"""The node's knowledge of the world: robot, obstacles and the checker that joins them.

All methods run on the node's one worker thread, so nothing here is locked. Every change is made on the side
and put in place when it is complete: a refused robot, scene or obstacle leaves all as it was.
"""

import numpy as np
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker, CollisionWorld, MotionCheck, RobotModel, load_urdf
from ...arm.collision.scene_file import fixed_frames, load_scene
from ...errors import ObstacleError
from ..common.request_error import RequestError
from . import codes as error_codes
from .conversions import add_obstacle, check_markers, obstacle_name, seconds
from .parameters import ArmParameters

MAX_WAITING = 1000  # obstacle messages kept for a robot that has not come yet


class PlanningScene:
    """Robot, obstacles and checker.

    robot: None while there is none
    world: CollisionWorld of the scene file and of the topic, poses in the robot's root frame; never changed in
        place, so that a checker may keep it
    frames: {frame: (4, 4) T_root_frame} that messages may name; "" is the root
    warm_planners: {(planner, device)} that are compiled for the robot
    values: ArmParameters; what says how to load the robot is read at start only
    """

    def __init__(self, values: ArmParameters) -> None:
        self.values = values
        self.robot: RobotModel | None = None
        self.world = CollisionWorld()
        self.frames: dict[str, np.ndarray] = {}
        self.warm_planners: set[tuple[str, str]] = set()
        self._urdf = ""
        self._fixed: dict[str, float] = {}  # joints that are not planned
        self._markers: dict[str, tuple[Marker, float]] = {}  # of the topic: (marker, end of its life in seconds)
        self._waiting: list[tuple[MarkerArray, float]] = []
        self._checker: tuple[tuple, tuple, CollisionChecker] | None = None  # and what it was made from

    def load_robot(self, urdf: str, now: float) -> list[tuple[MarkerArray, float]]:
        """Take a robot (URDF text, or the path of its file) and its scene file.

        -> [(message, its time)] of obstacles that came before any robot, for change_obstacles
        """
        if urdf == self._urdf:
            return []
        robot = self._load(urdf, {})
        fixed = fixed_frames(robot)
        frames = fixed | {"": np.eye(4)}
        if self.values.world_frame:
            frames[self.values.world_frame] = np.eye(4)
        world = load_scene(self.values.scene_file, fixed) if self.values.scene_file else CollisionWorld()
        world = _with_markers(world, (marker for marker, _ in self._markers.values()), frames)
        self.robot, self.frames, self.world = robot, frames, world
        self._urdf, self._fixed, self._checker, self.warm_planners = urdf, {}, None, set()
        self.forget_expired(now)
        waiting, self._waiting = self._waiting, []
        return waiting

    def place_other_joints(self, positions: dict[str, float], tolerance: float) -> None:
        """Follow joints that are not planned (a gripper): the geometry is placed anew when one has moved.

        positions: {joint: rad or m}, measured, so brought into the limits; joints that the robot lacks are ignored
        """
        joints = self.require_robot().other_joints
        fixed = self._fixed | {
            name: float(np.clip(positions[name], lower, upper))
            for name, (lower, upper) in joints.items()
            if name in positions
        }
        if any(
            abs(value - self._fixed.get(name, np.clip(0.0, *joints[name]))) > tolerance for name, value in fixed.items()
        ):
            self.robot = self._load(self._urdf, fixed)
            self._fixed, self._checker = fixed, None

    def change_obstacles(self, message: MarkerArray, now: float) -> None:
        """Apply a MarkerArray of the topic (ADD, MODIFY, DELETE, DELETEALL), all of it or nothing.

        DELETEALL removes the markers of its namespace, or all when it names none; those of the scene file stay.
        now: seconds on the clock of the node, from which lifetimes count
        """
        check_markers(message.markers, self.values)
        if self.robot is None:
            self._waiting = [*self._waiting, (message, now)][-MAX_WAITING:]
            return
        markers = dict(self._markers)
        for marker in message.markers:
            name = obstacle_name(marker)
            if marker.action == Marker.ADD:
                lifetime = seconds(marker.lifetime)
                markers[name] = marker, now + lifetime if lifetime > 0 else np.inf
            elif marker.action == Marker.DELETE:
                markers.pop(name, None)
            elif marker.action == Marker.DELETEALL:
                markers = {known: kept for known, kept in markers.items() if marker.ns and kept[0].ns != marker.ns}
            else:
                raise ObstacleError(f"'{name}': unknown marker action {marker.action}")
        check_markers([marker for marker, _ in markers.values()], self.values)
        self._take(markers)

    def forget_expired(self, now: float) -> bool:
        """Drop the topic's obstacles whose lifetime is over; True when there were any."""
        alive = {name: kept for name, kept in self._markers.items() if kept[1] > now}
        expired = len(alive) < len(self._markers)
        if expired:
            self._take(alive)
        return expired

    def world_for(self, request: PlanMotion.Request) -> CollisionWorld:
        """The obstacles of one PlanMotion request: the scene's and its own."""
        if not request.obstacles.markers and not request.ignore_scene:
            return self.world
        check_markers(request.obstacles.markers, self.values)
        for marker in request.obstacles.markers:
            if marker.action != Marker.ADD:
                raise ObstacleError(
                    f"'{obstacle_name(marker)}': a request can only add obstacles, "
                    f"but its marker action is {marker.action}"
                )
        return _with_markers(
            CollisionWorld() if request.ignore_scene else self.world, request.obstacles.markers, self.frames
        )

    def checker_for(
        self, world: CollisionWorld, device: str, motion: MotionCheck, margin: float = 0.0
    ) -> CollisionChecker:
        """CollisionChecker of the robot in this world; the last one serves again while nothing has changed."""
        robot_and_world, how = (self.require_robot(), world), (device, motion, margin)
        kept = self._checker
        if kept is None or kept[1] != how or any(a is not b for a, b in zip(kept[0], robot_and_world, strict=True)):
            checker = CollisionChecker(*robot_and_world, device, motion, margin)
            kept = self._checker = robot_and_world, how, checker
        return kept[2]

    def require_robot(self) -> RobotModel:
        """The robot; RequestError while there is none."""
        if self.robot is None:
            raise RequestError(
                error_codes.COLLISION_CHECKING_UNAVAILABLE,
                "there is no robot yet: publish its URDF on robot_description, or set robot_description_file",
            )
        return self.robot

    def _take(self, markers):
        """Put the topic's markers in place; only what changed is built again."""
        world = self.world.copy()
        for name in self._markers.keys() - markers.keys():
            world.remove(name)
        changed = [marker for name, (marker, _) in markers.items() if self._markers.get(name, (None,))[0] is not marker]
        self.world = _with_markers(world, changed, self.frames)
        self._markers = markers

    def _load(self, urdf, fixed):
        values = self.values
        return load_urdf(
            urdf,
            srdf=values.srdf_file or None,
            package_dirs=values.package_dirs,
            joints=values.joints or None,
            group=values.group or None,
            fixed=fixed,
        )


def _with_markers(world, markers, frames):
    world = world.copy()
    for marker in markers:
        add_obstacle(world, marker, frames)
    return world
