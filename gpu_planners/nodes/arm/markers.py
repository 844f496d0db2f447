"""What RViz shows: the robot's convex shapes at start and goal, the obstacles, the ways of end effector and joints."""

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from scipy.spatial.transform import Rotation
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...arm import CollisionWorld, RobotModel
from ...arm.geometry.polytope import outward_triangles
from ...arm.geometry.shapes import ConvexShape, ShapeKind

START_COLOUR = ColorRGBA(r=0.2, g=0.5, b=0.9, a=0.45)
GOAL_COLOUR = ColorRGBA(r=0.2, g=0.8, b=0.3, a=0.45)
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


def scene_markers(robot: RobotModel, world: CollisionWorld, path: np.ndarray, tip_link: str) -> MarkerArray:
    """MarkerArray in the robot's root frame that replaces all markers shown before.

    path: (K, dof), or (0, dof) to show the obstacles only
    """
    markers = [Marker(action=Marker.DELETEALL)]
    markers += [
        shape_marker(shape, shape.pose, "obstacles", i, OBSTACLE_COLOUR) for i, shape in enumerate(world.shapes)
    ]
    if len(path):
        markers += robot_markers(robot, path[0], "start", START_COLOUR) + robot_markers(
            robot, path[-1], "goal", GOAL_COLOUR
        )
        markers += _lines(robot, path, tip_link)
    for marker in markers:
        marker.header.frame_id = robot.root_link
    return MarkerArray(markers=markers)


def robot_markers(robot: RobotModel, q: np.ndarray, namespace: str, colour: ColorRGBA) -> list[Marker]:
    """One marker for each convex shape of the robot at q (dof,)."""
    return [
        shape_marker(shape, pose, namespace, i, colour)
        for i, (shape, pose) in enumerate(zip(robot.shapes, shape_poses(robot, q), strict=True))
    ]


def shape_poses(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """(S, 4, 4) of the robot's shapes in the root frame at q (dof,), in metres."""
    T_root_frames = robot.frame_poses(q)[0]
    return np.array(
        [
            (T_root_frames[f] if f >= 0 else np.eye(4)) @ shape.pose
            for shape, f in zip(robot.shapes, robot.shape_frame, strict=True)
        ]
    )


def shape_marker(
    shape: ConvexShape, T_root_shape: np.ndarray, namespace: str, number: int, colour: ColorRGBA
) -> Marker:
    """Marker of a ConvexShape at a pose (4, 4)."""
    marker = Marker(ns=namespace, id=number, type=MARKER_TYPE[shape.kind], action=Marker.ADD, color=colour)
    x, y, z, w = Rotation.from_matrix(T_root_shape[:3, :3]).as_quat().tolist()
    px, py, pz = T_root_shape[:3, 3].tolist()
    marker.pose = Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))
    if shape.kind == ShapeKind.POLYTOPE:
        marker.scale = Vector3(x=1.0, y=1.0, z=1.0)
        marker.points = _points(outward_triangles(shape.vertices).reshape(-1, 3))
    else:
        sx, sy, sz = (2 * shape.half_extents).tolist()
        marker.scale = Vector3(x=sx, y=sy, z=sz)
    return marker


def _lines(robot, path, tip_link):
    """The ways of the end effector and, thinner, of each joint that moves."""
    pieces = [
        np.linspace(a, b, max(2, int(np.linalg.norm(b - a) / TIP_STEP))) for a, b in zip(path, path[1:], strict=False)
    ]
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
