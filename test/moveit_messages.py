"""MoveIt's messages, made short for tests."""

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import (
    AttachedCollisionObject,
    BoundingVolume,
    CollisionObject,
    Constraints,
    JointConstraint,
    MotionPlanRequest,
    OrientationConstraint,
    PlanningScene,
    PositionConstraint,
    RobotState,
)
from node_harness import GROUP
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive


def pose(position=(0.0, 0.0, 0.0), rotation=None):
    message = Pose()
    message.position.x, message.position.y, message.position.z = map(float, position)
    o = message.orientation
    o.x, o.y, o.z, o.w = map(float, (Rotation.identity() if rotation is None else rotation).as_quat())
    return message


def state(q, names=GROUP, diff=True):
    return RobotState(joint_state=JointState(name=list(names), position=[float(value) for value in q]), is_diff=diff)


def box(name, size=(0.1, 0.1, 0.1), position=(0.0, 2.0, 0.1), frame="plate", operation=CollisionObject.ADD):
    message = CollisionObject(id=name, operation=operation, pose=pose(position))
    message.header.frame_id = frame
    message.primitives = [SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[float(x) for x in size])]
    message.primitive_poses = [pose()]
    return message


def attached(name, link="hand", size=(0.02, 0.02, 0.3), touch_links=(), operation=CollisionObject.ADD):
    message = AttachedCollisionObject(link_name=link, touch_links=list(touch_links))
    message.object = box(name, size, (0.1, 0.0, 0.0), link, operation)
    return message


def scene(*objects, attach=(), **fields):
    message = PlanningScene(is_diff=True, robot_state=RobotState(is_diff=True), **fields)
    message.world.collision_objects = list(objects)
    message.robot_state.attached_collision_objects = list(attach)
    return message


def joint_goal(q, tolerance=1e-4, names=GROUP):
    return Constraints(
        joint_constraints=[
            JointConstraint(
                joint_name=name, position=float(value), tolerance_above=tolerance, tolerance_below=tolerance, weight=1.0
            )
            for name, value in zip(names, q)
        ]
    )


def position_constraint(link, position, size=(1e-3,), kind=SolidPrimitive.SPHERE, frame="plate", offset=(0, 0, 0)):
    message = PositionConstraint(link_name=link, weight=1.0)
    message.header.frame_id = frame
    message.target_point_offset.x, message.target_point_offset.y, message.target_point_offset.z = map(float, offset)
    message.constraint_region = BoundingVolume(
        primitives=[SolidPrimitive(type=kind, dimensions=[float(x) for x in size])], primitive_poses=[pose(position)]
    )
    return message


def orientation_constraint(link, rotation, tolerance=(1e-2,) * 3, frame="plate", parameterization=0):
    message = OrientationConstraint(link_name=link, weight=1.0, parameterization=parameterization)
    message.header.frame_id = frame
    message.orientation = pose(rotation=rotation).orientation
    (message.absolute_x_axis_tolerance, message.absolute_y_axis_tolerance, message.absolute_z_axis_tolerance) = map(
        float, tolerance
    )
    return message


def pose_goal(link, T, frame="plate", radius=1e-3, tolerance=1e-2):
    return Constraints(
        position_constraints=[position_constraint(link, T[:3, 3], (radius,), frame=frame)],
        orientation_constraints=[
            orientation_constraint(link, Rotation.from_matrix(T[:3, :3]), (tolerance,) * 3, frame)
        ],
    )


def motion_request(*goals, start=(0.0, 0.0, 0.0), **fields):
    fields = {"group_name": "", "allowed_planning_time": 5.0} | fields
    message = MotionPlanRequest(goal_constraints=list(goals), **fields)
    if start is not None:
        message.start_state = state(start)
    return message


def path_of(trajectory):
    return np.array([point.positions for point in trajectory.joint_trajectory.points])
