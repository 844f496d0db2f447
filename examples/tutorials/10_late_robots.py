"""
A warehouse with robots that are late
=====================================

Real robots slip, stop for people, lose messages and break down. The node ``fleet_planner`` tells each of them
how far it may go without waiting for anybody, so a late robot stops only those that need its tiles next, and
nobody enters a tile before it is empty.

You learn how a robot's driver obeys the node, what lateness costs, how you hear of a robot that broke down, and
how to check that nobody ever meets. The robots are simulated; the node, its topics and its clock are real.

.. code-block:: bash

    pip install "gpu_planners[ros]"
"""

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Pose
from nav_msgs.msg import OccupancyGrid
from PIL import ImageDraw
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.spatial import cKDTree

from gpu_planners.fleet.drawing import draw_fleet, fleet_page
from gpu_planners.grid.maps.generated import warehouse_map
from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentStates

out = Path("out")
out.mkdir(exist_ok=True)
short = os.environ.get("GPU_PLANNERS_SHORT") == "1"
rng = np.random.default_rng(0)

# %%
# Start the node
# --------------
# A step takes 0.1 s here, so that an hour of a warehouse fits into minutes; real robots take 1 s or more for a
# tile. A robot that has not done its action for ``silent_after_s`` counts as broken. A ROS domain of its own
# keeps the node away from your robots.
STEP_S, SILENT_S = 0.1, 1.5
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
parameters = ["-p", "motion:=turning", "-p", f"step_s:={STEP_S}", "-p", f"silent_after_s:={SILENT_S}"]
words = ["--ros-args", *parameters, "--log-level", "fatal"]
server = subprocess.Popen([sys.executable, "-m", "gpu_planners.nodes.fleet.node", *words])
atexit.register(server.terminate)  # also when something below fails

rclpy.init()
node = rclpy.create_node("late_robots")
states = node.create_publisher(AgentStates, "fleet_planner/agent_states", 10)
goals = node.create_publisher(AgentGoals, "fleet_planner/agent_goals", 10)
maps = node.create_publisher(OccupancyGrid, "map", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))

grid = warehouse_map(20, 40, apron=4) if short else warehouse_map(30, 60, apron=6)
free = np.argwhere(~grid.blocked)
message = OccupancyGrid(data=(100 * grid.blocked).ravel().tolist())
message.header.frame_id = "map"
message.info.height, message.info.width, message.info.resolution = grid.rows, grid.cols, 1.0
message.info.origin.orientation.w = 1.0
maps.publish(message)

# %%
# A robot and its driver
# ----------------------
# The node numbers the actions of each robot: 1, 2, 3, ... A message on ``agent_actions`` names, for each of its
# ``ids``, the action that the robot does now (``numbers``, ``tiles``, ``headings``), where that begins
# (``start_tiles``, ``start_headings``), and ``ahead`` more that it may do at once after that, each of which begins
# where the one before it ends. A driver needs one rule:
#
#     *Finish the action that you have begun. Then do, in order, all that the latest message says with higher
#     numbers. Begin none where you are not.*
#
# So an action that comes again changes nothing for a robot that has begun it, helps one that missed the first
# message, and sends nobody the wrong way. ``tiles`` and ``headings`` say where an action ends, which is all that
# most controllers want; ``actions`` says the same as "forward" and "turn left".


def orders_of(message):
    """AgentActions -> {id: [(number, (tile, heading) where it begins, (tile, heading) where it ends), ...]}"""
    starts, tiles, ahead = (
        [tuple(tile) for tile in np.reshape(flat, (-1, 2)).tolist()]
        for flat in (message.start_tiles, message.tiles, message.ahead_tiles)
    )
    begins, ends = zip(starts, message.start_headings), zip(tiles, message.headings)
    later, orders = iter(zip(ahead, message.ahead_headings)), {}
    for id, number, more, begin, end in zip(message.ids, message.numbers, message.ahead, begins, ends):
        states = [begin, end, *(next(later) for _ in range(more))]
        orders[id] = [(number + k, *states[k : k + 2]) for k in range(more + 1)]
    return orders


class Robot:
    """tile, heading: of the last action that it has done; number: of the action that it does, or did last"""

    late = lost = 0.0  # share of actions that take three times as long, of messages that get lost

    def __init__(self, tile):
        self.tile, self.heading = tile, int(rng.integers(4))
        self.to, self.done, self.pace = None, 0.0, 1.0  # the end of its action, the share that is done, how fast
        self.number, self.orders = 0, []
        self.broken_until, self.is_silent = 0.0, False
        self.new_errand()

    def hear(self, orders):
        if not self.hears_nothing():
            self.orders = [order for order in orders if order[0] > self.number]

    def drive(self, now, dt):
        """Go on for dt seconds."""
        if now < self.broken_until:
            return
        steps = dt / STEP_S
        while steps > 0 and (self.to or self.orders):
            if self.to is None:
                number, (tile, heading), end = self.orders[0]
                if tile != tuple(self.tile) or heading != self.heading:
                    return  # it has missed something
                self.orders.pop(0)
                self.number, self.to = number, (np.array(end[0]), int(end[1]))
                self.pace = 1 / 3 if rng.random() < self.late else 1.0
            used = min(steps, (1 - self.done) / self.pace)
            steps, self.done = steps - used, self.done + used * self.pace
            if self.done > 1 - 1e-9:
                (self.tile, self.heading), self.to, self.done = self.to, None, 0.0

    def place(self):
        """[row, col], between two tiles while it moves"""
        return self.tile if self.to is None else self.tile + self.done * (self.to[0] - self.tile)

    def pose(self):
        heading = self.to[1] if self.to and self.done > 0.5 else self.heading
        return pose_of(self.place(), heading)

    def hears_nothing(self):
        return rng.random() < self.lost or (self.is_silent and time.monotonic() < self.broken_until)

    def is_there(self):
        return self.to is None and (self.tile == self.goal).all()

    def new_errand(self):
        self.goal, self.tells = free[rng.integers(len(free))], True


def pose_of(tile, heading=0):
    pose = Pose()
    pose.position.y, pose.position.x = (np.asarray(tile) + 0.5).tolist()
    pose.orientation.w, pose.orientation.z = np.cos(heading * np.pi / 4), np.sin(heading * np.pi / 4)
    return pose


# %%
# The world
# ---------
# Robots drive, report their poses ten times a second, and get another goal wherever they reach one. Every few
# milliseconds we look at where all of them really are: a robot is a disc of 0.74 tiles, and no two may touch. (The
# parameter ``clearance``, 0.125 tiles on each side, tells the node how wide a robot is: it has left a tile when all
# of it is out.)
robots = {f"r{k}": Robot(tile) for k, tile in enumerate(rng.permutation(free)[: 40 if short else 100])}
everyone, touches, history, named = [*robots.values()], [], [], {}


def hear(message):
    for id, orders in orders_of(message).items():
        robots[id].hear(orders)


def hear_diagnostics(message):
    """Keep what the node says of itself: ids of silent, late and stuck agents, goals per minute, and more."""
    for status in message.status:
        if status.name.endswith("fleet_planner"):
            named.update({pair.key: pair.value for pair in status.values})


node.create_subscription(AgentActions, "fleet_planner/agent_actions", hear, 10)
node.create_subscription(DiagnosticArray, "/diagnostics", hear_diagnostics, 10)


def work(seconds, until=lambda: False):
    """Let robots work for so long, or until something holds -> errands per minute"""
    done, begins = 0, time.monotonic()
    before, reports = begins, begins
    while before < begins + seconds and not until():
        rclpy.spin_once(node, timeout_sec=0.005)
        now = time.monotonic()
        dt, before = min(now - before, STEP_S), now
        for robot in everyone:
            robot.drive(now, dt)
            if robot.is_there():
                robot.new_errand()
                done += 1
        places = np.array([robot.place() for robot in everyone])
        touches.extend(cKDTree(places).query_pairs(0.74))
        assert not grid.blocked[tuple(np.rint(places).astype(int).T)].any(), "a robot is in a shelf"
        if now >= reports:
            reports += STEP_S
            history.append((np.rint(places).astype(int), [r.heading for r in everyone], [r.goal for r in everyone]))
            told = {id: robot.pose() for id, robot in robots.items() if not robot.hears_nothing()}
            message = AgentStates(ids=[*told], poses=[*told.values()])
            message.header.stamp = node.get_clock().now().to_msg()  # old reports are known by it
            states.publish(message)
            new = {id: pose_of(robot.goal) for id, robot in robots.items() if robot.tells}
            if new:
                goals.publish(AgentGoals(ids=[*new], poses=[*new.values()]))
            for robot in everyone:
                robot.tells = False
    return 60 * done / (before - begins)


# %%
# The node takes robots into the fleet as it hears of them. The first start on a machine compiles for up to a
# minute.
while not all(topic.get_subscription_count() for topic in (states, goals, maps)):
    time.sleep(0.1)
    assert server.poll() is None, "the node has ended; its last lines above say why"
work(300, until=lambda: all(robot.number for robot in everyone))
print(f"{len(robots)} robots move")

# %%
# What lateness costs
# -------------------
# First all robots are in time, then a tenth of their actions take three times as long, then a tenth of all
# messages to and from robots gets lost as well. Late robots themselves lose a sixth of their time; the rest is what
# others wait for them.
seconds, in_time = 10 if short else 60, None
for name, late, lost in (("in time", 0, 0), ("a tenth late", 0.1, 0), ("and a tenth lost", 0.1, 0.1)):
    Robot.late, Robot.lost = late, lost
    work(2)
    errands = work(seconds)
    in_time = in_time or errands
    print(f"{name:18} {errands:6.0f} errands a minute, {100 * errands / in_time:3.0f} %")
print(f"robots that touched: {len(touches)}")

# %%
# Some break down
# ---------------
# Two robots stop where they are: one still reports, one falls silent. After ``silent_after_s`` the node names them
# on ``/diagnostics``, and in ``states`` of ``agent_actions``. Their tiles are obstacles from then on, and others go
# around them.
broken = everyone[:2]
for robot in broken:
    robot.broken_until, robot.is_silent = np.inf, robot is broken[1]
work(20, until=lambda: "r0" in named.get("late", "") and "r1" in named.get("silent", ""))
print("late:", named["late"], "  silent:", named["silent"])
stood = [robot.place() for robot in broken]
print(f"{work(seconds / 2):.0f} errands a minute without them")
assert (stood == np.array([robot.place() for robot in broken])).all()

# %%
# Dots are robots, lines the last three seconds of some of them, and rings those that broke down.
positions, headings, aims = map(np.array, zip(*history))
picture = draw_fleet(grid, positions, size=960)
pen, scale = ImageDraw.Draw(picture), picture.width / grid.cols
for y, x in (np.array(stood) + 0.5) * scale:
    pen.ellipse((x - 1.2 * scale, y - 1.2 * scale, x + 1.2 * scale, y + 1.2 * scale), outline="#e8590c", width=5)
picture.quantize(128).save(out / "10_late_robots.png")

# %%
# Repaired, they go on where they are: what the node told them still holds, and it tells them more.
numbers = [robot.number for robot in broken]
for robot in broken:
    robot.broken_until = 0.0
work(20, until=lambda: all(robot.number > number + 2 for robot, number in zip(broken, numbers)))
work(2)  # the next diagnostics
print("late:", named["late"] or "nobody", "  silent:", named["silent"] or "nobody")

# %%
# Did anybody meet?
# -----------------
# We looked at true places rather than at reported ones. To see that this finds something, we count the pairs that
# would touch now if robots were wider than a tile.
print(f"{len(history)} reports, robots that touched: {len(touches)}")
assert not touches
print("with discs of 1.1 tiles:", len(cKDTree([robot.place() for robot in everyone]).query_pairs(1.1)))

# %%
# As a page that plays the last 30 s:
page = fleet_page(grid, positions[-300:], headings[-300:], aims[-300:], "Robots that are late", STEP_S)
(out / "10_late_robots.html").write_text(page, encoding="utf-8")

# %%
# End
# ---
node.destroy_node()
rclpy.shutdown()
server.terminate()
print("the node ended with code", server.wait(20))

# %%
# What to try next
# ----------------
# * ``steps_ahead``: how far the plan may run ahead of late robots (:doc:`/fleet_planner`).
# * Kill the node and start it again with ``state_file:=/tmp/fleet.json``: it goes on where it ended. Without the
#   file it learns from reports where robots are, and its ``step`` counts from 1 anew; then a driver forgets what it
#   was told, and its number.
# * Watch it in RViz: ``~/markers`` colours robots by their state.
# * ``python -m benchmarks --only fleets_late`` moves up to 1,000 robots for half an hour.
