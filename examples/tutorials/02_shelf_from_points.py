"""
A shelf that a camera sees
==========================

Nobody measured the shelf: a depth camera looks at it. Its points, among them those of the robot's own arm, become
obstacles, and the arm reaches into the shelf without touching it.

Install: ``pip install "gpu_planners[view]" example-robot-data``
"""

import time
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.collision.point_cloud import near_robot, obstacle_voxels, points_in_root
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.share import example_robots_share

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
rng = np.random.default_rng(0)

# %%
# The robot, where it stands while the camera looks
# -------------------------------------------------

share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
robot = load_urdf(panda / "urdf/panda.urdf", srdf=panda / "srdf/panda.srdf", package_dirs=[share], group="arm")
ready = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])

# %%
# A cloud
# -------
#
# A real camera gives a ``PointCloud2``. Here we make what it would see: surfaces of a table and of a shelf with two
# boards, sampled at random, with 3 mm of noise, points on the robot's own hand and forearm, and some that are not
# finite. The camera's frame is not the robot's: ``T_root_camera`` says where it stands.

PANELS = [  # centre and size, metres in the robot's root frame
    ((0.45, 0.0, -0.02), (0.9, 1.2, 0.02)),  # table
    ((0.88, 0.0, 0.4), (0.02, 0.7, 0.8)),  # back
    *(((0.72, y, 0.4), (0.32, 0.02, 0.8)) for y in (-0.35, 0.35)),  # sides
    *(((0.72, 0.0, z), (0.32, 0.7, 0.02)) for z in (0.0, 0.40, 0.80)),  # boards
    ((0.74, -0.18, 0.10), (0.12, 0.12, 0.18)),  # a box on the lower one
]
points = []
for centre, size in PANELS:
    size = np.array(size)
    on = rng.uniform(-0.5, 0.5, (int(6e4 * np.sort(size)[1:].prod()), 3)) * size
    thin = np.argmin(size)
    on[:, thin] = np.copysign(size[thin] / 2, on[:, thin])
    points.append(on + centre)
frames = robot.frame_poses(ready)[0]
for shape, frame in zip(robot.shapes, robot.shape_frame):
    if frame >= 0:
        T_root_shape = frames[frame] @ shape.pose
        points.append(shape.vertices @ T_root_shape[:3, :3].T + T_root_shape[:3, 3])  # corners of the hulls
in_root = np.concatenate(points) + rng.normal(0, 0.003, (sum(map(len, points)), 3))
T_root_camera = np.array([[0, 0, 1, -0.6], [-1, 0, 0, 0.0], [0, -1, 0, 0.9], [0, 0, 0, 1.0]])
cloud = (in_root - T_root_camera[:3, 3]) @ T_root_camera[:3, :3]
cloud[::500] = np.nan
print(len(cloud), "points in the camera's frame")

# %%
# From points to obstacles
# ------------------------
#
# Three steps: into the root frame, without what is not finite or outside of a box; without the robot, exactly, by the
# distance of each point to its hulls at the configuration in which it was seen; and into voxels, of which those that
# touch are merged into boxes. The arm does not take itself for an obstacle, and nothing is missed: each point that
# counts lies in a voxel.

began = time.perf_counter()
box = np.array([[-0.2, -1.0, -0.1], [1.2, 1.0, 1.2]])
placed = points_in_root(cloud, T_root_camera, box)
own = near_robot(robot, ready, placed, padding=0.03)
voxels = obstacle_voxels(placed[~own], size=0.02)
world = CollisionWorld()
world.add_voxels("shelf", voxels.cells, voxels.size, np.eye(4))
print(
    f"{len(placed)} points, {own.sum()} of them the robot's own; {len(voxels.cells)} voxels of 2 cm, merged into",
    end=" ",
)
print(f"{len(world.shapes)} boxes, in {1e3 * (time.perf_counter() - began):.0f} ms")

fig = plt.figure(figsize=(7, 6), layout="constrained")
axis = fig.add_subplot(projection="3d", xlabel="x, m", ylabel="y, m", zlabel="z, m")
axis.scatter(*placed[~own][::6].T, s=1, c=placed[~own][::6, 2], cmap="viridis")
axis.scatter(*placed[own].T, s=2, color="tab:red", label="the robot's own")
axis.view_init(22, -150)
axis.set_aspect("equal")
axis.legend()
fig.savefig(out / "02_cloud.png", dpi=110)

# %%
# Into the shelf
# --------------
#
# The hand points along x, into the compartment above the box. Inverse kinematics gives the configurations that are
# free among the voxels; the planner ends in whichever it reaches first.

checker = CollisionChecker(robot, world)
pose = np.array([[0, 0, 1, 0.66], [0, 1, 0, 0.12], [-1, 0, 0, 0.18], [0, 0, 0, 1.0]])
goals = robot.inverse_kinematics(pose, checker, seed_q=ready, solutions=8).q
result = rrt_connect.solve(ready, goals, checker, rrt_connect.Settings(optimise_s=0.3))
print(len(goals), "goals;", result.status.value, "-", f"{result.cost:.2f} rad, {len(result.path)} waypoints")
draw_path(robot, world, result.path, out / "02_into_the_shelf.png", size=(1100, 800))

# %%
# Something moves
# ---------------
#
# The next cloud makes the next world. A checker packs only what differs when it gets a new one, so a cloud that comes
# ten times a second delays a plan by a millisecond or so. Here a parcel hangs where the hand would have passed.

began = time.perf_counter()
way = robot.link_poses(result.path[0] + 0.5 * (result.path[1] - result.path[0]))[robot.tip_link][0, :3, 3]
more = np.concatenate([placed[~own], way + rng.uniform(-0.05, 0.05, (3000, 3))])
changed, voxels = CollisionWorld(), obstacle_voxels(more, size=0.02)
changed.add_voxels("shelf", voxels.cells, voxels.size, np.eye(4))
checker.world = changed
free = checker.motions_valid(result.path[:-1], result.path[1:]).all()
print("is the old path still free?", bool(free), f"({1e3 * (time.perf_counter() - began):.0f} ms with the new cloud)")
again = rrt_connect.solve(ready, goals, checker, rrt_connect.Settings(optimise_s=0.3))
print(again.status.value, "-", f"{again.cost:.2f} rad")
if again.solved:
    draw_path(robot, changed, again.path, out / "02_around_the_parcel.png", size=(1100, 800))

# %%
# What a camera does not see is not known: look from where the arm will go. Over ROS the node does all of this by
# itself: it takes ``sensor_msgs/PointCloud2`` on ``~/points``, removes the robot by ``joint_states``, and says when a
# cloud cannot be used (:doc:`/scene`).
