"""
A MoveIt user's first plan
==========================

You know MoveIt 2: planning groups, goal constraints, the planning scene, the action ``move_action``. This page
asks the node ``arm_planner`` in the place of ``move_group``. Interfaces and messages stay the same, so programs
written for ``move_group`` plan unchanged. What changes is the answer: a motion is accepted only with a proof
that it is free all along, not at samples, and it comes timed, as a controller takes it.

You learn how to start the node, fill the planning scene, plan to joint values and to a pose, move the tool on a
straight line (Pilz's ``LIN``), take up a bottle and carry it upright, and what an answer says when something
cannot be done.

.. code-block:: bash

    pip install "gpu_planners[ros,view]" example-robot-data
    sudo apt install ros-jazzy-moveit-msgs      # only the messages of MoveIt; no package index has them

The robot is a Panda of example-robot-data. Yours needs two files: its URDF, and the SRDF that MoveIt's setup
assistant wrote.
"""
# needs: moveit_msgs

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, Pose, Quaternion
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import (
    AttachedCollisionObject,
    BoundingVolume,
    CollisionObject,
    Constraints,
    JointConstraint,
    MotionPlanRequest,
    MoveItErrorCodes,
    OrientationConstraint,
    PlanningScene,
    PositionConstraint,
    RobotState,
)
from moveit_msgs.srv import ApplyPlanningScene
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import Header

from gpu_planners.arm import CollisionWorld, load_urdf
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.share import example_robots_share

out = Path("out")
out.mkdir(exist_ok=True)
size = (750, 500) if os.environ.get("GPU_PLANNERS_SHORT") == "1" else (1000, 667)  # of pictures

# %%
# Start the node
# --------------
# In a launch file it is
#
# .. code-block:: bash
#
#     ros2 launch gpu_planners arm_planner.launch.py urdf:=panda.urdf srdf:=panda.srdf group:=arm
#
# Here it is a process of our own, which ends with this script. A ROS domain of its own keeps it away from your
# robots. Where ``move_group`` runs too, set the parameter ``moveit_interface``, since both offer services of
# the same names (:doc:`/moveit`).
share = example_robots_share()
urdf, srdf = (share / f"example-robot-data/robots/panda_description/{kind}/panda.{kind}" for kind in ("urdf", "srdf"))
parameters = {
    "robot_description_file": urdf,
    "srdf_file": srdf,
    "package_dirs": f"[{share}]",  # where package://example-robot-data/... begins
    "group": "arm",
    "tip_link": "panda_hand_tcp",
}
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
command = [sys.executable, "-m", "gpu_planners.nodes.arm.node", "--ros-args", *words, "--log-level", "warn"]
planner = subprocess.Popen(command)
atexit.register(planner.terminate)  # also when something below fails

rclpy.init()
node = rclpy.create_node("moveit_tutorial")


# %%
# The node says on ``/diagnostics`` when it is ready. What nobody has used on this machine yet is compiled
# first, once, for up to a minute or two.
ready = []


def hear(message):
    ready.extend(status.message for status in message.status if status.message.startswith("ready"))


node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
while not ready:
    rclpy.spin_once(node, timeout_sec=1.0)
    assert planner.poll() is None, "the node has ended; what it printed says why"
print(ready[0])


def answer(future):
    """Wait for the answer of a service or an action."""
    rclpy.spin_until_future_complete(node, future, timeout_sec=120)
    assert future.done(), "the node has not answered; what it printed says why"
    return future.result()


# %%
# The planning scene
# ------------------
# The Panda stands at a table with a shelf, and in the shelf there is a bottle. Objects go into the scene as
# with MoveIt: as ``CollisionObject`` of a ``PlanningScene`` that is a diff, by the service
# ``apply_planning_scene``. Here, each is a box or a cylinder at a position.
ROOT, TOOL = "panda_link0", "panda_hand_tcp"
objects = {  # name: (dimensions in metres: x, y, z of a box, or height and radius of a cylinder; position)
    "table": ((1.1, 1.4, 0.04), (0.55, 0.0, -0.02)),
    "shelf_left": ((0.28, 0.02, 0.80), (0.75, 0.36, 0.40)),
    "shelf_right": ((0.28, 0.02, 0.80), (0.75, -0.36, 0.40)),
    "shelf_back": ((0.02, 0.74, 0.80), (0.90, 0.0, 0.40)),
    "shelf_board": ((0.28, 0.70, 0.02), (0.75, 0.0, 0.35)),
    "shelf_top": ((0.28, 0.74, 0.02), (0.75, 0.0, 0.81)),
    "post": ((0.6, 0.03), (0.35, 0.35, 0.30)),
    "bottle": ((0.16, 0.03), (0.70, -0.10, 0.442)),
}


def collision_object(name, dimensions, place, frame=ROOT):
    kind = SolidPrimitive.BOX if len(dimensions) == 3 else SolidPrimitive.CYLINDER
    thing = CollisionObject(id=name, operation=CollisionObject.ADD)
    thing.header.frame_id = frame
    thing.primitives = [SolidPrimitive(type=kind, dimensions=list(dimensions))]
    thing.primitive_poses = [place]
    return thing


def pose(position, orientation=(0.0, 0.0, 0.0, 1.0)):
    return Pose(position=Point(**dict(zip("xyz", position))), orientation=Quaternion(**dict(zip("xyzw", orientation))))


def apply(scene):
    """Change the scene of the node."""
    scene.is_diff = scene.robot_state.is_diff = True
    response = answer(scenes.call_async(ApplyPlanningScene.Request(scene=scene)))
    assert response.success, "the scene was refused; what the node printed says why"


scenes = node.create_client(ApplyPlanningScene, "apply_planning_scene")
scenes.wait_for_service()
scene = PlanningScene()
scene.world.collision_objects = [collision_object(name, sides, pose(place)) for name, (sides, place) in objects.items()]
apply(scene)

# %%
# A first plan: to joint values
# -----------------------------
# A ``MotionPlanRequest`` names the group, where to start and where to go; the action ``move_action`` takes it.
# With ``plan_only`` nothing moves. Without it, the node has the controller of the parameter
# ``controller_action`` execute the motion, and stops it where something comes in the way (:doc:`/execution`).
#
# The start is the latest ``joint_states``, as with MoveIt, or what ``start_state`` says. We have no robot, so
# we say it, open gripper included.
#
# Where a part of the planner is still being compiled, the node answers ``ABORT``, and we ask again.
JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
FINGER, OPEN = "panda_finger_joint1", 0.04  # metres; the other finger mimics it
READY = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]
move = ActionClient(node, MoveGroup, "move_action")
move.wait_for_server()


def plan(start, goal, gripper=OPEN, **more):
    """Ask for a motion from joint values to goal constraints -> path (K, 7), or None where there is none"""
    state = JointState(name=[*JOINTS, FINGER], position=[*map(float, start), gripper])
    request = MotionPlanRequest(group_name="arm", goal_constraints=[goal], allowed_planning_time=5.0, **more)
    request.start_state = RobotState(joint_state=state, is_diff=True)
    wanted = MoveGroup.Goal(request=request)
    wanted.planning_options.plan_only = True
    wanted.planning_options.planning_scene_diff.is_diff = True
    code = MoveItErrorCodes.ABORT
    while code == MoveItErrorCodes.ABORT:
        result = answer(answer(move.send_goal_async(wanted)).get_result_async()).result
        code = result.error_code.val
        time.sleep(0.5 * (code == MoveItErrorCodes.ABORT))
    points = result.planned_trajectory.joint_trajectory.points
    if code != MoveItErrorCodes.SUCCESS:
        print(f"code {code}: {result.error_code.message}")
        return None
    seconds = points[-1].time_from_start.sec + 1e-9 * points[-1].time_from_start.nanosec
    print(f"planned in {1e3 * result.planning_time:.0f} ms: {len(points)} points, {seconds:.2f} s of motion")
    return np.array([point.positions for point in points])


def joint_goal(values, tolerance=1e-3):
    return Constraints(
        joint_constraints=[
            JointConstraint(
                joint_name=name, position=value, tolerance_above=tolerance, tolerance_below=tolerance, weight=1.0
            )
            for name, value in zip(JOINTS, values)
        ]
    )


around_the_post = plan(READY, joint_goal([1.4, 0.5, 0.0, -1.8, 0.0, 2.3, 0.785]))

# %%
# ``planner_id`` is empty, so the node's parameter ``planner`` decides: RRT-Connect, which uses 0.3 s on a CPU
# (``rrt_connect.optimise_s``) to make its path shorter. OMPL's names work too, ``planner_id="RRTstar"`` for
# instance.
#
# For the picture we build the same scene in Python. It shows the hulls that are checked for collisions: the
# start is blue, the goal orange, the tube is the way of the tool.
robot = load_urdf(urdf, srdf=srdf, group="arm", package_dirs=[share], fixed={FINGER: OPEN})
world = CollisionWorld()
for name, (dimensions, position) in objects.items():
    T_root_object = np.eye(4)
    T_root_object[:3, 3] = position
    if len(dimensions) == 3:
        world.add_box(name, dimensions, T_root_object)
    else:
        height, radius = dimensions
        world.add_cylinder(name, radius, height, T_root_object)
draw_path(robot, world, around_the_post, out / "04_joints.png", size=size)

# %%
# To a pose
# ---------
# A pose in MoveIt is a region: a point of a link within a small sphere, and an orientation within tolerances.
# The node looks for configurations in the region that are free, and the motion ends in whichever it reaches
# first. Here the gripper is to stand in front of the bottle, and to look into the shelf: the z axis of the tool
# along x.
INTO_THE_SHELF = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))


def orientation_constraint(orientation, tolerances):
    x, y, z = tolerances  # rad
    return OrientationConstraint(
        header=Header(frame_id=ROOT),
        link_name=TOOL,
        orientation=pose((0.0, 0.0, 0.0), orientation).orientation,
        absolute_x_axis_tolerance=x,
        absolute_y_axis_tolerance=y,
        absolute_z_axis_tolerance=z,
        weight=1.0,
    )


def pose_goal(position, orientation):
    sphere = SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.002])
    place = PositionConstraint(
        header=Header(frame_id=ROOT),
        link_name=TOOL,
        constraint_region=BoundingVolume(primitives=[sphere], primitive_poses=[pose(position)]),
        weight=1.0,
    )
    turned = orientation_constraint(orientation, (0.01, 0.01, 0.01))
    return Constraints(position_constraints=[place], orientation_constraints=[turned])


before_the_bottle = plan(around_the_post[-1], pose_goal((0.56, -0.10, 0.46), INTO_THE_SHELF))
draw_path(robot, world, before_the_bottle, out / "04_pose.png", size=size)

# %%
# A straight line
# ---------------
# The last 14 cm are a straight line of the tool, as Pilz's planner does it: ``LIN``, and slower. The open
# fingers go around the bottle with 1 cm to spare on each side; the line is proven free, as any motion. ``LIN``
# does not go around what is in the way: with the gripper closed, the answer names the bottle.
line = {"pipeline_id": "pilz_industrial_motion_planner", "planner_id": "LIN", "max_velocity_scaling_factor": 0.3}
at_the_bottle = pose_goal((0.70, -0.10, 0.46), INTO_THE_SHELF)
plan(before_the_bottle[-1], at_the_bottle, gripper=0.0, **line)
grasp = plan(before_the_bottle[-1], at_the_bottle, **line)

# %%
# Take it up, carry it upright
# ----------------------------
# ``AttachedCollisionObject`` puts the bottle into the hand: it leaves the world, goes with the tool, and from
# now on may touch ``touch_links`` alone. We say where the tool has it: 1.8 cm along the tool's x axis, which
# points down. Where the node has ``joint_states``, the name of the object is enough, since it knows where the
# bottle stands.
fingers = ["panda_leftfinger", "panda_rightfinger"]
bottle = AttachedCollisionObject(link_name=TOOL, touch_links=["panda_hand", *fingers])
bottle.object = collision_object("bottle", objects["bottle"][0], pose((0.018, 0.0, 0.0), INTO_THE_SHELF), TOOL)
scene = PlanningScene()
scene.robot_state.attached_collision_objects = [bottle]
apply(scene)

# %%
# A full bottle must not tilt. That is a path constraint on the orientation: the tool may turn about the
# vertical, which is its own x axis, as far as it likes (3.15 rad), and by 0.1 rad about the two others. It is
# kept, with a proof, all along the motion.
TO_THE_RIGHT = (0.5, 0.5, -0.5, 0.5)
UPRIGHT = orientation_constraint(INTO_THE_SHELF, (3.15, 0.1, 0.1))
carried = plan(
    grasp[-1],
    pose_goal((0.15, -0.60, 0.45), TO_THE_RIGHT),
    path_constraints=Constraints(orientation_constraints=[UPRIGHT]),
)

# %%
# In the picture the robot carries the bottle, too.
carrying = robot.attach(
    "bottle",
    ConvexShape.cylinder("bottle", 0.03, 0.16, np.eye(4)),
    TOOL,
    np.linalg.inv(robot.link_poses(grasp[-1])[TOOL][0]) @ world.shapes[-1].pose,
)
world.remove("bottle")
draw_path(carrying, world, carried, out / "04_carried.png", size=size)

# %%
# When it cannot be done
# ----------------------
# Every answer has a code of ``MoveItErrorCodes`` and a sentence that names what is wrong, and the node goes on
# serving.
plan(READY, pose_goal((0.62, -0.1, 0.37), INTO_THE_SHELF))  # the bottle would be in the shelf's board
plan(READY, pose_goal((1.60, 0.0, 0.40), INTO_THE_SHELF))  # far away
plan([0.0, 1.7, 0.0, -0.1, 0.0, 1.571, 0.785], joint_goal(READY))  # it starts in the table
plan(READY, joint_goal(READY), planner_id="LBTRRT")

# %%
# End
# ---
# A node ends by Ctrl-C, SIGTERM, or with its launch file.
node.destroy_node()
rclpy.shutdown()
planner.terminate()
print("the node ended with code", planner.wait(20))

# %%
# What to try next
# ----------------
# * Your robot: its URDF and SRDF in the place of the Panda's. Joint limits come from the URDF alone.
# * RViz: the launch file with ``rviz:=true`` (:doc:`/view`). MoveIt's displays show each plan too
#   (``display_planned_path``).
# * A second opinion: ``gpu-planners verify`` asks coal and pinocchio about a motion (:doc:`/view`).
# * Keep ``move_group`` and have this node plan behind it, by the plugin of isaac_ros_cumotion (:doc:`/moveit`).
# * Execution, with a stop where something comes in the way: :doc:`/execution`.
