"""Soak: what a hundred thousand queries leave behind: memory, threads, open files, slower answers."""

import argparse
import contextlib
import importlib
import os
import threading
import time
from array import array
from collections import Counter

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.compiling import ROBOT
from gpu_planners.grid.maps.generated import warehouse_map
from gpu_planners.share import share_folder

from . import fleets_late
from .harness import Benchmark, Row, median, percentile, progress, told

BEGUN = 0.1  # of a run, after which it is measured what is left
PLANS, STEPS, NODE_S = 100_000, 100_000, 3600
QUICK = 100  # times fewer
RATE = 20  # requests a second
LEAST_PAUSE_S, LATE_S = 0.01, 1.0  # for what has arrived; how far the client may be behind its rate
CHECKED = 200  # plans of a run that coal checks
BOXES = 6
FAULTS = "not a number", "no goal", "unknown joint", "outside the limits", "an obstacle without size"
URDF = (share_folder() / "urdf" / ROBOT).with_suffix(".urdf")
DOMAIN = 88  # of ROS


class Gauge:
    """What a process holds, looked at when a tenth of a run is done and at its end. process: its number

    taken: seconds of each query
    """

    def __init__(self, process="self"):
        self._folder, self.taken, self._held = f"/proc/{process}", array("d"), []

    def look(self):
        with open(f"{self._folder}/statm") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        self._held.append((memory, *(len(os.listdir(f"{self._folder}/{what}")) for what in ("task", "fd"))))

    def figures(self):
        """Of the tenth after the first and of the last one, and what came meanwhile."""
        taken = np.array(self.taken)
        tenth = max(len(taken) // 10, 1)
        first, last = taken[tenth : 2 * tenth], taken[-tenth:]
        (memory, threads, files), (memory_after, threads_after, files_after) = self._held[0], self._held[-1]
        return {
            "queries": len(taken),
            "early_ms": 1e3 * median(first),
            "early_p99_ms": 1e3 * percentile(first, 99),
            "late_ms": 1e3 * median(last),
            "late_p99_ms": 1e3 * percentile(last, 99),
            "mb": memory_after,
            "more_mb": memory_after - memory,
            "more_threads": threads_after - threads,
            "more_files": files_after - files,
        }


def run(context):
    rows = []
    for device, missing in context.asked_for():
        rows.append(
            Row("plans among obstacles that change", f"gpu_planners, {device}", note=missing)
            if missing
            else told(_plans(device, PLANS // (QUICK if context.quick else 1)))
        )
    return rows


def run_fleet(context):
    return [told(_fleet(STEPS // (QUICK if context.quick else 1)))]


def run_node(context):
    return [told(_node(NODE_S // (QUICK if context.quick else 1)))]


def _plans(device, count):
    """Each plan has a world of its own: the checker's changes. Ctrl-C ends the run."""
    robot = load_urdf(URDF, URDF.with_suffix(".srdf"))
    checker, rng, gauge = CollisionChecker(robot, CollisionWorld(), device), np.random.default_rng(0), Gauge()
    settings, ended, contacts = rrt_connect.Settings(time_limit_s=0.1), Counter(), 0
    from gpu_planners.verify import CoalScene  # needs coal

    empty, boxes = CoalScene(URDF, URDF.with_suffix(".srdf")), []
    with contextlib.suppress(KeyboardInterrupt):  # what was measured counts
        for k in progress(range(count), f"plans, {device}"):
            world, T = checker.world, np.eye(4)
            T[:3, 3] = rng.uniform(-0.8, 0.8, 3)
            if len(boxes) == BOXES:
                world.remove(boxes.pop(0)["name"])
            boxes.append({"name": f"box {k}", "type": "box", "size": rng.uniform(0.05, 0.3, 3).tolist(), "pose": T})
            world.add_box(f"box {k}", boxes[-1]["size"], T)
            ends = rng.uniform(robot.lower, robot.upper, (2, robot.dof))
            began = time.perf_counter()
            found = rrt_connect.solve(ends[0], ends[1], checker, settings, seed=k)
            gauge.taken.append(time.perf_counter() - began)
            ended[found.status.value] += 1
            if found.solved and k % max(count // CHECKED, 1) == 0:
                contacts += empty.among(boxes).first_collision(found.path) is not None
            if k == int(BEGUN * count):
                gauge.look()
    gauge.look()
    told_of = ", ".join(f"{status}: {number}" for status, number in ended.most_common())
    note = f"{told_of}; {contacts} of those that coal checked collide"
    return Row("plans among obstacles that change", f"gpu_planners, {device}", gauge.figures(), note=note)


def _fleet(steps):
    """Robots that are late, lose messages and break down; the node's fleet in simulated time."""
    gauge = Gauge()

    def looks():
        for k in progress(range(steps), "fleet"):
            if k == int(BEGUN * steps):
                gauge.look()
            yield k

    faults = {"late": 0.05, "lost": 0.05, "broken": 2.0}
    given = {"bar": looks(), "taken": gauge.taken}
    robots, _, errands = fleets_late.run(warehouse_map(20, 30, apron=4), 40, steps * 0.5, **faults, **given)
    gauge.look()
    note = f"{errands:.0f} errands a minute, {robots.overlaps} overlaps"
    return Row("40 robots, 5 % late, 5 % lost, breakdowns", "RunningFleet, cpu", gauge.figures(), note=note)


def _node(seconds):
    """The node is a process of its own, measured from outside; every tenth request is a bad one."""
    case = f"{RATE} requests a second for {seconds} s, a tenth of them wrong, obstacles that change"
    try:
        for name in ("rclpy", "gpu_planners_msgs.srv"):
            importlib.import_module(name)
    except ImportError as error:
        return Row(case, "arm_planner, cpu", note=f"needs ROS 2 and gpu_planners_msgs: {error}")
    import rclpy

    before = os.environ.get("ROS_DOMAIN_ID")
    os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
    rclpy.init()
    try:
        gauge, answers, unanswered = _asked(seconds)
    finally:
        rclpy.try_shutdown()
        os.environ.pop("ROS_DOMAIN_ID")
        if before is not None:
            os.environ["ROS_DOMAIN_ID"] = before
    told = ", ".join(f"code {code}: {count}" for code, count in sorted(answers.items()))
    return Row(case, "arm_planner, cpu", gauge.figures(), note=f"{told}; {unanswered} without an answer")


def _asked(seconds):
    from visualization_msgs.msg import Marker, MarkerArray

    from gpu_planners.demo.node import NodeClient
    from gpu_planners.nodes.common.ros import DEEP
    from gpu_planners_msgs.srv import PlanMotion

    robot, rng, answers, waiting = load_urdf(URDF, URDF.with_suffix(".srdf")), np.random.default_rng(0), {}, []
    files = {"robot_description_file": str(URDF), "srdf_file": str(URDF.with_suffix(".srdf"))}
    options = argparse.Namespace(device="cpu", no_node=False)
    with NodeClient("arm", PlanMotion, "plan_motion", files, options) as client:
        client.wait_for_service()
        plans = client.node.create_client(PlanMotion, "arm_planner/plan_motion", qos_profile=DEEP)  # others keep ten
        publisher = client.node.create_publisher(MarkerArray, "arm_planner/obstacles", 10)
        client.ask(_request(robot, rng, 0))
        gauge, count = Gauge(client._process.pid), int(seconds * RATE)
        due, threads = time.monotonic(), threading.active_count()
        for k in progress(range(count), "node"):
            asked = time.monotonic()

            def answered(future, asked=asked):
                gauge.taken.append(time.monotonic() - asked)
                code = future.result().code
                answers[code] = answers.get(code, 0) + 1

            future = plans.call_async(_request(robot, rng, k, FAULTS[k // 10 % len(FAULTS)] * (k % 10 == 9)))
            future.add_done_callback(answered)
            waiting = [future for future in [*waiting, future] if not future.done()]
            if k % 5 == 0:
                marker = Marker(type=Marker.CUBE, ns="soak", id=k % 50)
                marker.pose.position.x, marker.pose.position.y = rng.uniform(-0.8, 0.8, 2).tolist()
                marker.pose.position.z, marker.pose.orientation.w = float(rng.uniform(0, 0.8)), 1.0
                marker.scale.x = marker.scale.y = marker.scale.z = float(rng.uniform(0.05, 0.2))
                publisher.publish(MarkerArray(markers=[marker]))
            due = max(due + 1 / RATE, time.monotonic() - LATE_S)  # on a machine that cannot follow, fewer requests
            client.pause(max(LEAST_PAUSE_S, due - time.monotonic()))
            if k == int(BEGUN * count):
                gauge.look()
        end = time.monotonic() + 30
        while any(not future.done() for future in waiting) and time.monotonic() < end:
            client.pause(0.1)
        gauge.look()
        assert threading.active_count() <= threads + 1
    return gauge, answers, sum(not future.done() for future in waiting)


def _request(robot, rng, seed, fault=""):
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import Marker, MarkerArray

    from gpu_planners_msgs.srv import PlanMotion

    names = list(robot.joint_names)
    start, goal = rng.uniform(robot.lower, robot.upper, (2, robot.dof)).tolist()
    request = PlanMotion.Request(seed=seed, time_limit_s=1.0, start=JointState(name=names, position=start))
    if fault == FAULTS[0]:
        goal[0] = float("nan")
    elif fault == FAULTS[2]:
        names = [*names[:-1], "no_such_joint"]
    elif fault == FAULTS[3]:
        goal[0] = 1e6
    elif fault == FAULTS[4]:
        request.obstacles = MarkerArray(markers=[Marker(type=Marker.CUBE, ns="flat")])
    if fault != FAULTS[1]:
        request.joint_goals = [JointState(name=names, position=goal)]
    return request


COLUMNS = {
    "queries": "count",
    "early_ms": "ms",
    "early_p99_ms": "ms",
    "late_ms": "ms",
    "late_p99_ms": "ms",
    "mb": "count",
    "more_mb": "count",
    "more_threads": "count",
    "more_files": "count",
}
TEXT = (
    "Times of queries in the second and in the last tenth of a run, and what the process holds at its end, more than "
    "when a tenth was done. "
)
BENCHMARKS = (
    Benchmark(
        "soak",
        "Soak: plans",
        TEXT + "Each among six boxes, one of which is new. Ctrl-C ends the run, and what was measured counts.",
        COLUMNS,
        run,
    ),
    Benchmark(
        "soak_fleet",
        "Soak: a fleet",
        TEXT + "The node's defaults, simulated time, planning times of steps.",
        COLUMNS,
        run_fleet,
    ),
    Benchmark(
        "soak_node", "Soak: a node", TEXT + "A process of its own, times from request to answer.", COLUMNS, run_node
    ),
)
