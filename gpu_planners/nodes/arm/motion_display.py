"""What a planning node shows of its motions: `~/markers` for the scene and the last motion, `~/ghost` that plays it.

Markers cost more than planning, so both are made only when someone looks. After a refusal the last motion goes.
"""

import time
from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import Point, Vector3
from scipy.spatial.transform import Rotation
from std_msgs.msg import ColorRGBA
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from ...arm import RobotModel
from ...arm.geometry.bricks import Bricks
from ...arm.geometry.polytope import outward_triangles
from ...arm.geometry.shapes import ConvexShape, ShapeKind
from ...arm.robot.attachment import own_shapes, shapes_of
from ...arm.trajectory import Trajectory
from ..common.pictures import Pictures, PosedMarkers
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
        tip_link = self._arm.values.tip_link or planned.robot.tip_link
        self._show(planned.robot, planned.objects, planned.path, tip_link)
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
            self._ghost = robot, PosedMarkers(MarkerArray(markers=_ghost_markers(robot, self._arm.scene.frames.root)))
        at = (time.monotonic() - self._began) % (trajectory.duration + REST_S)
        T = shape_poses(robot, trajectory.at(min(at, trajectory.duration))[0][0])
        self._ghost_publisher.publish(self._ghost[1].at(T[:, :3, 3], Rotation.from_matrix(T[:, :3, :3]).as_quat()))
        self._ghost_shown = True


def _ghost_markers(robot, frame):
    markers = robot_markers(robot, np.clip(np.zeros(robot.dof), robot.lower, robot.upper), "ghost", GHOST_COLOUR)
    for marker in markers:
        marker.header.frame_id = frame
    return markers


START_COLOUR = ColorRGBA(r=0.2, g=0.5, b=0.9, a=0.45)
GOAL_COLOUR = ColorRGBA(r=0.2, g=0.8, b=0.3, a=0.45)
ALLOWED_COLOUR = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.3)
OBSTACLE_COLOUR = ColorRGBA(r=0.85, g=0.5, b=0.2, a=0.8)
TIP_COLOUR = ColorRGBA(r=0.9, g=0.1, b=0.5, a=1.0)
TRAIL_COLOUR = ColorRGBA(r=0.45, g=0.5, b=0.56, a=0.9)
GHOST_COLOUR = ColorRGBA(r=0.95, g=0.75, b=0.2, a=0.7)
MARKER_TYPE = {
    ShapeKind.BOX: Marker.CUBE,
    ShapeKind.CYLINDER: Marker.CYLINDER,
    ShapeKind.SPHERE: Marker.SPHERE,
    ShapeKind.POLYTOPE: Marker.TRIANGLE_LIST,
}
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
            number = len(markers)
            if isinstance(piece, Bricks):
                markers += brick_markers(piece, "obstacles", number, colour)
            else:
                markers.append(shape_marker(piece, piece.pose, "obstacles", number, colour))
    carried = [i for name in objects.carried for i in shapes_of(robot, name)]
    if len(path):
        shapes = [*range(own_shapes(robot)), *carried]
        markers += robot_markers(robot, path[0], "start", START_COLOUR, shapes)
        markers += robot_markers(robot, path[-1], "goal", GOAL_COLOUR, shapes)
        markers += _lines(robot, path, tip_link)
    elif q is not None:
        markers += robot_markers(robot, q, "attached", START_COLOUR, carried)
    for marker in markers:
        marker.header.frame_id = frame
    return MarkerArray(markers=markers)


def robot_markers(
    robot: RobotModel, q: np.ndarray, namespace: str, colour: ColorRGBA, shapes: Iterable[int] | None = None
) -> list[Marker]:
    """One marker for each convex shape of the robot at q (dof,), or for some of robot.shapes."""
    chosen, poses = range(len(robot.shapes)) if shapes is None else shapes, shape_poses(robot, q)
    return [shape_marker(robot.shapes[i], poses[i], namespace, i, colour) for i in chosen]


def brick_markers(bricks: Bricks, namespace: str, number: int, colour: ColorRGBA) -> list[Marker]:
    """A CUBE_LIST for each size that the bricks have, numbered from `number`."""
    sizes, of_brick = np.unique(2 * bricks.half_extents, axis=0, return_inverse=True)
    centres, markers = (bricks.low + bricks.high) * (bricks.size / 2), []
    for i, size in enumerate(sizes.tolist()):
        marker = Marker(ns=namespace, id=number + i, type=Marker.CUBE_LIST, action=Marker.ADD, color=colour)
        marker.pose, marker.scale = pose_message(bricks.pose), Vector3(x=size[0], y=size[1], z=size[2])
        marker.points = _points(centres[of_brick.reshape(-1) == i])
        markers.append(marker)
    return markers


def shape_poses(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """(S, 4, 4) of the robot's shapes in the root frame at q (dof,), in metres."""
    T_root_frames = [*robot.frame_poses(q)[0], np.eye(4)]  # the last one for frame -1, the root
    return np.array([T_root_frames[f] @ s.pose for s, f in zip(robot.shapes, robot.shape_frame, strict=True)])


def shape_marker(
    shape: ConvexShape, T_root_shape: np.ndarray, namespace: str, number: int, colour: ColorRGBA
) -> Marker:
    """Marker of a ConvexShape at a pose (4, 4)."""
    marker = Marker(ns=namespace, id=number, type=MARKER_TYPE[shape.kind], action=Marker.ADD, color=colour)
    marker.pose = pose_message(T_root_shape)
    if shape.kind == ShapeKind.POLYTOPE:
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        marker.points = _points(outward_triangles(shape.vertices).reshape(-1, 3))
    else:
        sx, sy, sz = (2 * shape.half_extents).tolist()
        marker.scale = Vector3(x=sx, y=sy, z=sz)
    return marker


def _lines(robot, path, tip_link):
    """The ways of the end effector and, thinner, of each joint that moves."""
    legs = zip(path, path[1:], strict=False)
    pieces = [np.linspace(a, b, max(2, int(np.linalg.norm(b - a) / TIP_STEP))) for a, b in legs]
    q = np.concatenate([path[:1], *pieces])
    lines = [_line("tip_path", 0, robot.link_poses(q)[tip_link][:, :3, 3], TIP_COLOUR, 0.01)]
    joints = robot.frame_poses(q)[:, :, :3, 3]
    for f in range(joints.shape[1]):
        if np.ptp(joints[:, f], axis=0).max() > LEAST_TRAIL:
            lines.append(_line("trails", f, joints[:, f], TRAIL_COLOUR, 0.003))
    return lines


def _line(namespace, number, positions, colour, width):
    marker = Marker(ns=namespace, id=number, type=Marker.LINE_STRIP, action=Marker.ADD, color=colour)
    marker.scale.x = width
    marker.pose.orientation.w = 1.0
    marker.points = _points(positions)
    return marker


def _points(positions):
    return [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]
