"""
A full cup, and a sponge on a table
===================================

Some motions must keep something all along: a cup stays upright, a sponge stays on the table, an elbow stays low. The
planner takes this as constraints, and proves them everywhere on the motion, not at samples of it.

Install: ``pip install "gpu_planners[view]" example-robot-data``
"""

from math import inf
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.constraints import JointRange, KeepingChecker, Position, RelativePose, Tilt, all_of
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.share import example_robots_share

matplotlib.use("Agg")

out = Path("out")
out.mkdir(exist_ok=True)

# %%
# A robot, a table and a post in its way
# --------------------------------------

share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
robot = load_urdf(panda / "urdf/panda.urdf", srdf=panda / "srdf/panda.srdf", package_dirs=[share], group="arm")
TOOL = "panda_hand_tcp"
ready = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def pose(position, R=np.eye(3)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, position
    return T


world = CollisionWorld()
world.add_box("table", (0.9, 1.2, 0.02), pose((0.45, 0.0, -0.02)))
world.add_box("post", (0.1, 0.1, 1.0), pose((0.5, 0.0, 0.5)))
checker = CollisionChecker(robot, world, "cpu")
DOWN = np.diag([1.0, -1.0, -1.0])  # the tool's z axis points down


def reached(x, y, z):
    """(G, dof) configurations with the tool down at a place."""
    return robot.inverse_kinematics(pose((x, y, z), DOWN), checker, link=TOOL, seed_q=ready, solutions=4).q


start, goals = reached(0.45, 0.35, 0.3)[0], reached(0.45, -0.35, 0.3)

# %%
# The cup
# -------
#
# The hand holds it from above, so the axis that must stay is the tool's z axis, and it stays down: it may tilt by 0.1
# rad. Without the constraint the hand tilts as it likes.
cup = Tilt(robot, TOOL, axis=(0, 0, 1), direction=(0, 0, -1), tolerance=0.1)


def greatest(rule, path):
    """By how much a path exceeds a constraint at most, at 50 places of each segment; negative: it keeps it."""
    places = [np.linspace(a, b, 50) for a, b in zip(path, path[1:])]
    return float(rule.excess(np.concatenate(places)).max())


free = rrt_connect.solve(start, goals, checker)
carried = rrt_connect.solve(start, goals, checker, constraints=cup)
print(f"without the constraint the cup tilts by {cup.tilt.tolerance + greatest(cup, free.path):.2f} rad,")
print(f"with it by {cup.tilt.tolerance + greatest(cup, carried.path):.3f} rad at most, in {carried.time_s:.1f} s")
draw_path(robot, world, carried.path, out / "11_cup.png", size=(640, 480))

# %%
# The proof can be asked for: each segment is kept as a whole.
print(cup.kept(carried.path[:-1], carried.path[1:]).all())

# %%
# The sponge
# ----------
#
# A plane is a thin box without ends: the tool's tip stays within 1 cm of a height of 10 cm, stays upright, and joint 2
# stays below 1.2 rad. All of it holds at once.
plane = Position(robot, TOOL, (0, 0, 0), (-inf, -inf, 0.09), (inf, inf, 0.11))
rule = all_of([cup, plane, JointRange(robot, {"panda_joint2": (-1.7, 1.2)})])
low_start, low_goals = reached(0.45, 0.35, 0.1)[0], reached(0.45, -0.35, 0.1)
wiped = rrt_connect.solve(low_start, low_goals, checker, constraints=rule)
heights = [robot.link_poses(np.linspace(a, b, 50))[TOOL][:, 2, 3] for a, b in zip(wiped.path, wiped.path[1:])]
print(f"the tip is between {min(map(np.min, heights)):.4f} and {max(map(np.max, heights)):.4f} m high")
draw_path(robot, world, wiped.path, out / "11_sponge.png", size=(640, 480))

# %%
# Times
# -----
#
# A motion that rounds its corners leaves the path. With a ``KeepingChecker`` it leaves it only where it is proven to
# keep the constraints there as well.
stops = time_parameterize(wiped.path, robot.velocity, robot.acceleration, checker=checker)
motion = time_parameterize(
    wiped.path, robot.velocity, robot.acceleration, deviation=0.1, checker=KeepingChecker(checker, rule)
)
played = motion.at(np.linspace(0, motion.duration, 1000))[0]
print(f"{stops.duration:.2f} s with stops, {motion.duration:.2f} s with round corners")
print("all of it keeps the constraints:", rule.satisfied(played).all())

# %%
# When it cannot be
# -----------------
#
# A start that does not keep the constraints is refused, and the answer says what it breaks.
print(rrt_connect.solve(start, low_goals, checker, constraints=rule).message)

# %%
# A bar in both hands
# -------------------
#
# Baxter's hands face each other, 40 cm apart, and hold a bar. It is attached to the right one, so it moves with it, and
# the left one may touch it. What keeps it in both is one more constraint: the left hand stays where it is in the right
# one's frame, within 2 mm and 0.02 rad.
baxter = share / "example-robot-data/robots/baxter_description"
ARM = ("s0", "s1", "e0", "e1", "w0", "w1", "w2")
two_arms = load_urdf(
    baxter / "urdf/baxter.urdf",
    srdf=(baxter / "srdf/baxter_manipulation.srdf").read_text(),
    package_dirs=[share],
    joints=[f"{side}_{joint}" for side in ("right", "left") for joint in ARM],
    velocity=1.0,
)
touched = [name for name in two_arms.link_names if "gripper" in name]
bar = ConvexShape.box("bar", (0.06, 0.06, 0.36), np.eye(4))
two_arms = two_arms.attach("bar", [bar], "right_gripper", pose((0, 0, 0.2)), touch_links=touched)
among = CollisionWorld()
among.add_box("wall", (0.04, 0.2, 0.3), pose((0.59, 0.0, 0.1)))
both = CollisionChecker(two_arms, among, "cpu")
together = RelativePose(two_arms, "right_gripper", "left_gripper", pose((0, 0, 0.4), DOWN))

# %%
# A pose of the bar gives goals for both arms: the right hand is placed by inverse kinematics, the left one follows.
LEFTWARD = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # the right hand points to the left
relaxed = np.tile([0.0, -0.5, 0.0, 1.2, 0.0, 0.9, 0.0], 2)
start, goals = (together.carrying(pose((x, -0.2, 0.2), LEFTWARD), both, seed_q=relaxed) for x in (0.48, 0.7))
over = rrt_connect.solve(start[0], goals, both, constraints=together)
draw_path(two_arms, among, over.path, out / "11_bar.png", size=(640, 480))


def between(q):
    """(N, 4, 4) of the left hand in the right one's frame."""
    poses = two_arms.link_poses(q)
    return np.linalg.inv(poses["right_gripper"]) @ poses["left_gripper"]


along = np.concatenate([np.linspace(a, b, 50) for a, b in zip(over.path, over.path[1:])])
off = np.linalg.norm(between(along)[:, :3, 3] - (0, 0, 0.4), axis=1)
print(f"{len(over.path)} waypoints in {over.time_s:.2f} s; the hands are {1e3 * off.max():.2f} mm off at most")
print("proven:", together.kept(over.path[:-1], over.path[1:]).all())
