"""
From a URDF to a motion
=======================

You have the URDF of a robot and know what stands around it. At the end of this page the robot moves from one place to
another, with a timed motion that a controller accepts, and two independent libraries agree that it touches nothing.

The robot is a UR10 of example-robot-data. With yours, change the paths in the next block.

Install: ``pip install "gpu_planners[view,verify]" example-robot-data``
"""

from pathlib import Path

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.arm.view.saved_page import motion_page
from gpu_planners.share import example_robots_share
from gpu_planners.verify import CoalScene, check_path

out = Path("out")
out.mkdir(exist_ok=True)

# %%
# Load the robot
# --------------
#
# ``package_dirs`` are the folders in which the packages of ``package://`` paths lie. A missing mesh, or a macro that
# xacro did not expand, is an error: run ``xacro robot.urdf.xacro > robot.urdf`` first. An SRDF (``srdf=``, with
# ``group=``) says which links may touch; MoveIt's setup assistant writes one. Without it, all pairs
# of links are checked but those that are adjacent, proven never to meet, or touch wherever the joints stand.

share = example_robots_share()
urdf = share / "example-robot-data/robots/ur_description/urdf/ur10_robot.urdf"
robot = load_urdf(urdf, package_dirs=[share])
print(robot.name, robot.joint_names, "tool:", robot.tip_link)
for joint, low, high, speed in zip(robot.joint_names, robot.lower, robot.upper, robot.velocity):
    print(f"  {joint:22} {low:6.2f} to {high:5.2f} rad, at most {speed:.2f} rad/s")
print(len(robot.shapes), "convex shapes;", len(robot.self_collision_pairs), "pairs of them can collide")

# %%
# Look at what was loaded before you trust it. The picture shows what is checked: the convex hulls of the meshes, here
# at a pose in which the arm is stretched upwards.

ready = np.array([0.0, -1.2, 1.6, -1.9, -1.57, 0.0])
print("free of self-collision:", CollisionChecker(robot, CollisionWorld()).configurations_valid([ready])[0])
draw_path(robot, CollisionWorld(), ready, out / "01_robot.png", size=(900, 700))

# %%
# Say what is around it
# ---------------------
#
# A scene file names obstacles: boxes, cylinders, spheres, convex hulls and meshes, in metres, in the root frame of the
# URDF. In Python ``world.add_box("table", size, pose)`` and its like add them one by one. :doc:`/scene` has more, also
# what cameras see.

scene_file = out / "01_scene.yaml"
scene_file.write_text(
    """\
obstacles:
  - {name: table, type: box, size: [1.8, 1.8, 0.04], position: [0.3, 0, -0.03]}
  - {name: cabinet, type: box, size: [0.4, 0.8, 1.5], position: [0.85, 0, 0.75]}
  - {name: beam, type: box, size: [1.2, 0.1, 0.1], position: [0.1, -0.1, 1.05]}
  - {name: lamp, type: cylinder, radius: 0.05, height: 0.3, position: [0.5, -0.1, 0.85]}
"""
)
world = load_scene(scene_file, fixed_frames(robot))
checker = CollisionChecker(
    robot, world, margin=0.01
)  # kept from obstacles, metres; device="auto": a GPU if there is one
print("facing the cabinet collide:", checker.colliding_pairs(ready))

# %%
# Where to?
# ---------
#
# A goal is a configuration, or several; the motion ends in whichever is reached first. For a pose of the tool, inverse
# kinematics gives the configurations that put it there and are free. The tool of this arm shall point downwards behind
# the cabinet.

pose = np.array([[1, 0, 0, 0.35], [0, -1, 0, -0.75], [0, 0, -1, 0.35], [0, 0, 0, 1.0]])  # of the tool in the root frame
start = ready + [1.2, 0.0, 0.0, 0.0, 0.0, 0.0]
goals = robot.inverse_kinematics(pose, checker, seed_q=start, solutions=8).q
print(len(goals), "free configurations have the tool there")

# %%
# Plan
# ----
#
# RRT-Connect finds a path in milliseconds. ``optimise_s`` lets it look for shorter ones for so long; the same seed
# gives the same first path.

result = rrt_connect.solve(start, goals, checker, rrt_connect.Settings(optimise_s=0.3), seed=0)
print(result.status.value, "-", len(result.path), "waypoints,", f"{result.cost:.2f} rad,", result.samples, "samples")
draw_path(robot, world, result.path, out / "01_path.png", size=(1100, 800))

# %%
# If it is not solved, ``result.message`` says why: the start or the goal collides (and with what), a joint is outside
# of its limits, or the time was spent. "Not solved" is never a proof that there is no path.
#
# Time it
# -------
#
# ``time_parameterize`` gives velocities and accelerations within the limits. With ``deviation`` and the checker,
# corners are rounded where that is proven free; otherwise the arm stops at each waypoint. A URDF has no limits of
# acceleration: by default a joint reaches full speed in 0.5 s.

motion = time_parameterize(result.path, robot.velocity, robot.acceleration, deviation=0.2, checker=checker)
print(f"{motion.duration:.2f} s; after one second the joints are at", motion.at([1.0])[0][0].round(2))
(out / "01_motion.html").write_text(motion_page(robot, world, robot.tip_link, motion), encoding="utf-8")

# %%
# Turn the view with the mouse, and play the motion with the bar below.
#
# Ask somebody else
# -----------------
#
# pinocchio places the links by its own reading of the URDF, and coal checks the meshes themselves, triangle by
# triangle, every millimetre along the motion. Neither shares code with the planner. ``gpu-planners verify`` does the
# same for a file.

scene = CoalScene(urdf, None, scene_file, [share], joints=robot.joint_names)
report = check_path(motion.at(np.linspace(0, motion.duration, 400))[0], scene)
print("free" if report.free else report.contact, "in", report.configurations, "configurations")
print("nearest:", *report.nearest.bodies, f"{1e3 * report.nearest.distance:.1f} mm")

# %%
# Where next
# ----------
#
# * ``gpu-planners plan robot.urdf --scene scene.yaml --start ... --goal-pose ...`` does all of this from a shell;
#   ``gpu-planners view robot.urdf`` opens a page with sliders and a goal to drag (:doc:`/view`).
# * The node ``arm_planner`` does it over ROS (:doc:`/arm_planner`), and serves MoveIt's interfaces (:doc:`/moveit`).
# * What "free" promises, and how accurately: :doc:`/guarantees`.
