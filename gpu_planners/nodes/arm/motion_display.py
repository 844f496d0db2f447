"""What a planning node shows of its motions: `~/markers` for the scene and the last motion, `~/ghost` that plays it.

Markers cost more than planning, so both are made only when someone looks. After a refusal the last motion goes.
"""

import time

import numpy as np
from scipy.spatial.transform import Rotation
from std_msgs.msg import ColorRGBA
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from ...arm import RobotModel
from ...arm.geometry.bricks import Bricks
from ...arm.geometry.polytope import outward_triangles
from ...arm.geometry.shapes import ShapeKind
from ...arm.robot.attachment import own_shapes, shapes_of
from ...arm.trajectory import Trajectory
from ..common.pictures import NOWHERE, Pictures, PosedMarkers, marker_of
from ..common.ros import steady_clock
from .arm_services import ArmServices, Planned
from .conversions import pose_message, trajectory_of
from .scene_objects import SceneObjects

LOOK_S = 0.2  # between two looks at whether someone wants the scene
FRAME_S = 1 / 15  # between two places of the ghost
REST_S = 1.0  # of the ghost at the end, before it begins again


class MotionDisplay:
    """The publishers of the arm node's pictures. Methods may be called on any thread."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, node = arm, arm.node
        self._pictures = Pictures(node, {"markers": MarkerArray}, lambda publish: publish(), LOOK_S)
        self._ghost_publisher = node.create_publisher(MarkerArray, "~/ghost", 1)
        self._motion: tuple[RobotModel, Trajectory] | None = None
        self._ghost: tuple[RobotModel, PosedMarkers] | None = None  # what it looks like, and of which robot
        self._ghost_shown, self._began = False, 0.0
        node.create_timer(FRAME_S, self._publish_ghost, clock=steady_clock())

    def show_scene(self, robot: RobotModel, objects: SceneObjects) -> None:
        self._show(robot, objects, np.zeros((0, robot.dof)), robot.tip_link)
        self._motion = None

    def show_motion(self, planned: Planned, timed: JointTrajectory) -> None:
        """Show a motion, and play it again and again."""
        self._show(planned.robot, planned.objects, planned.path, planned.robot.tip_link)
        self._motion, self._began = (planned.robot, trajectory_of(timed)), time.monotonic()

    def _show(self, *scene):
        arm = self._arm
        self._pictures.show("markers", lambda: scene_markers(arm.scene.frames.root, *scene, arm.place()))

    def _publish_ghost(self):
        motion = self._motion
        if not self._ghost_publisher.get_subscription_count():
            return
        if motion is None:
            if self._ghost_shown:
                self._ghost_publisher.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
                self._ghost_shown = False
            return
        robot, trajectory = motion
        if self._ghost is None or self._ghost[0] is not robot:
            q = np.clip(np.zeros(robot.dof), robot.lower, robot.upper)
            markers = _robot_markers(robot, q, "ghost", GHOST_COLOUR, range(len(robot.shapes)))
            self._ghost = robot, PosedMarkers(_in_frame(self._arm.scene.frames.root, markers))
        at = (time.monotonic() - self._began) % (trajectory.duration + REST_S)
        T = _shape_poses(robot, trajectory.at(min(at, trajectory.duration))[0][0])
        self._ghost_publisher.publish(self._ghost[1].at(T[:, :3, 3], Rotation.from_matrix(T[:, :3, :3]).as_quat()))
        self._ghost_shown = True


START_COLOUR = ColorRGBA(r=0.2, g=0.5, b=0.9, a=0.45)
GOAL_COLOUR = ColorRGBA(r=0.2, g=0.8, b=0.3, a=0.45)
ALLOWED_COLOUR = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.3)
OBSTACLE_COLOUR = ColorRGBA(r=0.85, g=0.5, b=0.2, a=0.8)
TIP_COLOUR = ColorRGBA(r=0.9, g=0.1, b=0.5, a=1.0)
TRAIL_COLOUR = ColorRGBA(r=0.45, g=0.5, b=0.56, a=0.9)
GHOST_COLOUR = ColorRGBA(r=0.95, g=0.75, b=0.2, a=0.7)
MARKER_TYPE = {ShapeKind.BOX: Marker.CUBE, ShapeKind.CYLINDER: Marker.CYLINDER, ShapeKind.SPHERE: Marker.SPHERE}
TIP_STEP = 0.02  # rad or m of joint motion between two points of the lines
LEAST_TRAIL = 1e-3  # metres that a joint must move to have one


def scene_markers(
    frame: str, robot: RobotModel, objects: SceneObjects, path: np.ndarray, tip_link: str, q: np.ndarray | None = None
) -> MarkerArray:
    """MarkerArray in the robot's root frame, named `frame`, that replaces all markers shown before.

    path: (K, dof), or (0, dof) to show the objects only; q: (dof,) where the robot is, to show what it carries then
    """
    markers = [Marker(action=Marker.DELETEALL)]
    for name, one in objects.standing.items():
        colour = ALLOWED_COLOUR if name in objects.allowed else OBSTACLE_COLOUR
        for piece in one.placed:
            if isinstance(piece, Bricks):
                markers += _brick_markers(piece, len(markers), colour)
            else:
                markers.append(_shape_marker(piece, piece.pose, "obstacles", len(markers), colour))
    carried = [i for name in objects.carried for i in shapes_of(robot, name)]
    if len(path):
        shapes = [*range(own_shapes(robot)), *carried]
        markers += _robot_markers(robot, path[0], "start", START_COLOUR, shapes)
        markers += _robot_markers(robot, path[-1], "goal", GOAL_COLOUR, shapes)
        markers += _lines(robot, path, tip_link)
    elif q is not None:
        markers += _robot_markers(robot, q, "attached", START_COLOUR, carried)
    return _in_frame(frame, markers)


def _in_frame(frame, markers):
    for marker in markers:
        marker.header.frame_id = frame
    return MarkerArray(markers=markers)


def _robot_markers(robot, q, namespace, colour, shapes):
    """A marker for each of some shapes, numbers in robot.shapes, of the robot at q (dof,)."""
    poses = _shape_poses(robot, q)
    return [_shape_marker(robot.shapes[i], poses[i], namespace, i, colour) for i in shapes]


def _shape_poses(robot, q):
    """(S, 4, 4) of the robot's shapes in the root frame at q (dof,), in metres."""
    T_root_frames = [*robot.frame_poses(q)[0], np.eye(4)]  # the last one for frame -1, the root
    return np.array([T_root_frames[f] @ s.pose for s, f in zip(robot.shapes, robot.shape_frame, strict=True)])


def _brick_markers(bricks, number, colour):
    """A CUBE_LIST for each size that the bricks have, numbered from `number`."""
    sizes, of_brick = np.unique(2 * bricks.half_extents, axis=0, return_inverse=True)
    centres, of_brick = (bricks.low + bricks.high) * (bricks.size / 2), of_brick.reshape(-1)
    return [
        _marker("obstacles", number + i, Marker.CUBE_LIST, colour, size, bricks.pose, centres[of_brick == i])
        for i, size in enumerate(sizes.tolist())
    ]


def _shape_marker(shape, T_root_shape, namespace, number, colour):
    if shape.kind != ShapeKind.POLYTOPE:
        size = (2 * shape.half_extents).tolist()
        return _marker(namespace, number, MARKER_TYPE[shape.kind], colour, size, T_root_shape)
    corners = outward_triangles(shape.vertices).reshape(-1, 3)
    return _marker(namespace, number, Marker.TRIANGLE_LIST, colour, (1.0, 1.0, 1.0), T_root_shape, corners)


def _lines(robot, path, tip_link):
    """The ways of the end effector and, thinner, of each joint that moves."""
    legs = zip(path, path[1:], strict=False)
    pieces = [np.linspace(a, b, max(2, int(np.linalg.norm(b - a) / TIP_STEP))) for a, b in legs]
    q = np.concatenate([path[:1], *pieces])
    joints = robot.frame_poses(q)[:, :, :3, 3]
    moving = np.flatnonzero(np.ptp(joints, axis=0).max(axis=1) > LEAST_TRAIL).tolist()
    lines = [("tip_path", 0, TIP_COLOUR, 0.01, robot.link_poses(q)[tip_link][:, :3, 3])]
    lines += [("trails", f, TRAIL_COLOUR, 0.003, joints[:, f]) for f in moving]
    return [
        _marker(namespace, number, Marker.LINE_STRIP, colour, (width, 0.0, 0.0), np.eye(4), points)
        for namespace, number, colour, width, points in lines
    ]


def _marker(namespace, number, kind, colour, size, pose, points=NOWHERE):
    """size: x, y, z; pose: (4, 4); points: (N, 3); metres"""
    marker = marker_of(namespace, number, kind, colour, size, points)
    marker.pose = pose_message(pose)
    return marker
