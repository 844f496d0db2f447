"""
Replacing Nav2's planner
========================

You run Nav2 and want its paths from this package: of least cost wherever there is a path, repaired when the map
changes, and planned on a GPU where there is one. The node ``grid_planner`` takes the place of
``planner_server``. Behaviour trees, controllers and the lifecycle manager stay as they are.

This page does what Nav2 does to that node, step by step: it starts the node, brings it up as the lifecycle
manager would, sends the map as ``map_server`` would, and asks for paths as ``bt_navigator`` would. Then an
obstacle appears.

.. code-block:: bash

    pip install "gpu_planners[ros]"

It needs Python and ROS's messages, but no Nav2. Where ``nav2_msgs`` is installed (``apt install
ros-jazzy-nav2-msgs``) the script uses Nav2's own action and service, and elsewhere ``nav_msgs/srv/GetPlan``,
which the node offers everywhere.
"""

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import OccupancyGrid
from nav_msgs.srv import GetPlan
from PIL import ImageDraw
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile

from gpu_planners.grid import GridMap
from gpu_planners.grid.drawing import draw_map
from gpu_planners.share import share_folder

try:
    from nav2_msgs.action import ComputePathToPose
    from nav2_msgs.srv import IsPathValid

    has_nav2 = True
except ImportError:
    has_nav2 = False
print("Nav2's messages are", "here" if has_nav2 else "not installed: asking by nav_msgs/srv/GetPlan")

out = Path("out")
out.mkdir(exist_ok=True)
short = os.environ.get("GPU_PLANNERS_SHORT") == "1"

# %%
# A floor
# -------
# An office of 16 x 10 m, 5 cm a cell: two rows of rooms, with a corridor between them and a door in each wall.
# A map of your own is ``load_map_yaml("map.yaml")`` of ``gpu_planners.grid``; here we only need its cells, 0
# free and 100 occupied.
cells = np.zeros((200, 320), np.int8)
cells[[0, 1, -2, -1]], cells[:, [0, 1, -2, -1]] = 100, 100  # outer walls
cells[78:81], cells[120:123] = 100, 100  # walls of the corridor
for wall in (80, 160, 240):
    cells[:78, wall : wall + 3], cells[123:, wall : wall + 3] = 100, 100  # walls between rooms
for door in (30, 130, 190, 290):
    cells[78:81, door : door + 22] = cells[120:123, door : door + 22] = 0
for row in (30, 160):
    cells[row : row + 22, 80:83] = cells[row : row + 22, 240:243] = 0  # doors between rooms

# %%
# Start the node
# --------------
# In your launch file you start ``grid_planner`` in the place of ``planner_server``, by that name, with the
# parameters of ``config/nav2.yaml``; :doc:`/nav2` has the lines. In a shell it is
#
# .. code-block:: bash
#
#     ros2 run gpu_planners grid_planner --ros-args -r __node:=planner_server --params-file config/nav2.yaml
#
# and here a process of our own, which ends with this script. A ROS domain of its own keeps it away from your
# robots.
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
parameters = str(share_folder() / "config/nav2.yaml")
words = ["--ros-args", "-r", "__node:=planner_server", "--params-file", parameters, "--log-level", "warn"]
server = subprocess.Popen([sys.executable, "-m", "gpu_planners.nodes.grid.node", *words])
atexit.register(server.terminate)  # also when something below fails

rclpy.init()
node = rclpy.create_node("nav2_tutorial")


def answer(future):
    """Wait for the answer of a service or an action."""
    rclpy.spin_until_future_complete(node, future, timeout_sec=120)
    assert future.done(), "the node has not answered; what it printed says why"
    return future.result()


# %%
# Bring it up
# -----------
# With ``lifecycle: true`` the node is a managed one: it takes no map before *configure* and answers nothing
# before *activate*. Nav2's lifecycle manager does both; here we do. A service is there as soon as the node
# runs, so that is what we wait for.
states = node.create_client(ChangeState, "planner_server/change_state")
while not states.wait_for_service(1.0):
    assert server.poll() is None, "the node has ended; its last lines above say why"
for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
    response = answer(states.call_async(ChangeState.Request(transition=Transition(id=transition))))
    print("transition", transition, "succeeded" if response.success else "failed")

# %%
# Send the map
# ------------
# ``map_server`` publishes the map once, latched, so that whoever comes later gets it too. The node inflates it
# by ``footprint_radius`` and ``inflation_radius``, with the formula of Nav2's inflation layer, and shows what
# it plans on as ``~/map``. We wait for that. What nobody has used on this machine yet is compiled first, once,
# for up to half a minute.
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
maps = node.create_publisher(OccupancyGrid, "map", latched)
planned_on = []
node.create_subscription(OccupancyGrid, "planner_server/map", planned_on.append, latched)


def send_map(cells):
    """Publish a map, and wait until the node plans on it -> seconds"""
    message = OccupancyGrid(data=cells.ravel().tolist())
    message.header.frame_id = "map"
    message.info.height, message.info.width = cells.shape
    message.info.resolution = 0.05
    message.info.origin.orientation.w = 1.0
    planned_on.clear()
    began = time.perf_counter()
    maps.publish(message)
    while not planned_on:
        rclpy.spin_once(node, timeout_sec=0.1)
        assert server.poll() is None, "the node has ended; its last lines above say why"
    return time.perf_counter() - began


print(f"the node plans on the map after {send_map(cells):.2f} s")

# %%
# Ask for a path
# --------------
# ``bt_navigator`` sends ``compute_path_to_pose`` a goal. With ``use_start`` the path begins at a pose of ours;
# without, where tf2 says that the robot stands. A path that cannot be planned is no crash, but a code and a
# sentence: 207 means that the node is still loading or compiling, and behaviour trees ask again; so do we.
if has_nav2:
    paths = ActionClient(node, ComputePathToPose, "compute_path_to_pose")
    paths.wait_for_server()
else:
    plans = node.create_client(GetPlan, "planner_server/get_plan")
    plans.wait_for_service()


def pose(x, y):
    stamped = PoseStamped()
    stamped.header.frame_id = "map"
    stamped.pose.position.x, stamped.pose.position.y = float(x), float(y)
    stamped.pose.orientation.w = 1.0
    return stamped


def path_between(start, goal):
    """-> nav_msgs/Path, and why there is none"""
    if not has_nav2:
        request = GetPlan.Request(start=pose(*start), goal=pose(*goal), tolerance=0.5)
        plan = answer(plans.call_async(request)).plan
        return plan, "" if plan.poses else "no path; the node's log says why"
    goal = ComputePathToPose.Goal(start=pose(*start), goal=pose(*goal), use_start=True, planner_id="GridBased")
    result = answer(answer(paths.send_goal_async(goal)).get_result_async()).result
    return result.path, f"code {result.error_code}: {result.error_msg}" if result.error_code else ""


def path_when_ready(start, goal):
    """The same, asked again while the node is not ready; of GetPlan, which has no codes, while there is no path."""
    path, why = path_between(start, goal)
    while "207" in why or not (has_nav2 or path.poses):
        time.sleep(0.5)
        path, why = path_between(start, goal)
    return path


def points_of(path):
    return np.array([[p.pose.position.x, p.pose.position.y] for p in path.poses])


def metres(path):
    return np.linalg.norm(np.diff(points_of(path), axis=0), axis=1).sum()


start, goal = (1.0, 1.2), (14.5, 8.8)
path = path_when_ready(start, goal)
times = []
for _ in range(5 if short else 20):
    began = time.perf_counter()
    path, _ = path_between(start, goal)
    times.append(time.perf_counter() - began)
print(f"{len(path.poses)} poses, {metres(path):.1f} m; {1e3 * np.median(times):.0f} ms from the question to the answer")

# %%
# In the picture, the browner a tile, the nearer it is to a wall and the dearer. That keeps the path away from
# walls where there is room. It runs along the eight directions of the grid; Nav2's smoother rounds it.


def draw(name, *paths):
    """A picture of the map that the node plans on, with paths from start, white, to goal; the last one is orange."""
    message = planned_on[-1]
    shape = message.info.height, message.info.width
    grid = GridMap.from_occupancy(message.data, 0.05, shape=shape, occupied_from=100, highest_cost=100)
    picture = draw_map(grid, size=960, row_0_below=True)
    pen = ImageDraw.Draw(picture)
    scale = picture.width / (grid.cols * grid.resolution)  # pixels a metre
    for path, colour in zip(paths, ("#748ffc", "#e8590c")[-len(paths) :]):
        pixels = [(x * scale, picture.height - y * scale) for x, y in points_of(path)]
        pen.line(pixels, fill=colour, width=5, joint="curve")
        for (x, y), inside in ((pixels[0], "white"), (pixels[-1], colour)):
            pen.ellipse((x - 9, y - 9, x + 9, y + 9), fill=inside, outline=colour, width=4)
    picture.quantize(128).save(out / name)


draw("05_path.png", path)

# %%
# An obstacle appears
# -------------------
# Somebody closes the door that the path leads through. Your SLAM publishes the new map (or a piece of it, on
# ``map_updates``, where ``map_msgs`` is installed), and the behaviour tree asks ``is_path_valid`` whether the
# rest of its path is still free. It is not, and the answer names the poses that cannot be reached.
row, col = (points_of(path)[:, ::-1] / 0.05).astype(int).T
crossing = np.flatnonzero((row > 120) & (row < 123))[0]  # where the path passes the upper wall of the corridor
cells[118:125, col[crossing] - 20 : col[crossing] + 20] = 100
print(f"the node plans on the changed map after {send_map(cells):.2f} s")

if has_nav2:
    checks = node.create_client(IsPathValid, "is_path_valid")
    checks.wait_for_service()
    verdict = answer(checks.call_async(IsPathValid.Request(path=path)))
    print(f"is the path valid? {verdict.is_valid}; {len(verdict.invalid_pose_indices)} poses are blocked")

# %%
# So it asks for another one. The node has kept what it knows of the goal, the distance from every tile, and has
# repaired it about the obstacle; that is why the answer takes no longer than before.
began = time.perf_counter()
detour, _ = path_between(start, goal)
print(f"{metres(detour):.1f} m in place of {metres(path):.1f} m, after {1e3 * (time.perf_counter() - began):.0f} ms")
if has_nav2:
    print("is it valid?", answer(checks.call_async(IsPathValid.Request(path=detour))).is_valid)
draw("05_detour.png", path, detour)

# %%
# What cannot be done
# -------------------
# Goals may lie outside of the map or in a wall. Each refusal has one of Nav2's codes, which behaviour trees
# know, and a sentence. A goal in a wall is no refusal here: ``nav2.yaml`` allows a path to end up to 0.5 m
# beside an occupied goal (``goal_tolerance``).
for name, wanted in {"outside": (20.0, 5.0), "in a wall": (12.05, 0.9)}.items():
    path, why = path_between(start, wanted)
    end = points_of(path)[-1].round(2).tolist() if path.poses else None
    print(f"{name}: {why or f'a path to {end}, asked for {wanted}'}")

# %%
# End
# ---
# A node ends by Ctrl-C, SIGTERM, or with its launch file.
node.destroy_node()
rclpy.shutdown()
server.terminate()
print("the node ended with code", server.wait(20))

# %%
# What to try next
# ----------------
# * Put the node into your own bring-up, and read what to set there: :doc:`/nav2`.
# * Let it plan on Nav2's costmap, with what sensors see, in place of the map (``map_kind``).
# * Plan for many robots in one call (``~/plan_agents``, :doc:`/grid_planner`), or for robots that must not meet
#   (:ref:`sphx_glr_tutorials_07_warehouse_fleet.py`).
