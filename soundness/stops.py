"""Stops while a robot moves: whoever says stop, the robot comes to rest on the way that was planned, within its limits,
and whoever had it move is told. The real nodes arm_planner and trajectory_player, over DDS."""

import atexit
import functools
import importlib.util
import time

import numpy as np

from .harness import Attack, Skipped, numbers

ASIDE = 2e-3  # rad beside the planned way, where the controller joins a stop to what it plays
LIMITS = np.array([3.0, 2.4, 1.9])  # rad, of goals


@functools.cache
def _desks():
    for package in ("rclpy", "gpu_planners_msgs", "control_msgs"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise Skipped(f"nothing executes motions without the ROS package {package}")
    importlib.import_module("conftest")  # of the tests: ROS domains that nobody else has
    from .stop_desk import Desks

    desks = Desks()
    atexit.register(desks.close)
    return desks


def case(run, rng, number, tally):
    desks = _desks()
    name, way = list(desks.ways.items())[number % len(desks.ways)]
    goal, share, speed = rng.uniform(-LIMITS, LIMITS), float(rng.uniform(0.02, 0.9)), float(rng.uniform(0.15, 1.0))
    told = f"{name}, to {numbers(goal)} at {speed} of its speed, after {share} of the motion"
    desk = desks.desk()
    since = len(desk.seen) - 1
    moving = desk.begin(way.action, goal, speed)
    try:
        curve = desk.wait_for_part(share)
        said = time.time()
        way.stop(desk, moving, curve)
        end, (code, text) = desk.rest(), moving.outcome()
    except Skipped:
        moving.outcome()
        desks.after(way)
        raise
    seen = desk.seen[since:]
    stamps, places = np.array([at for at, _ in seen]), np.array([q for _, q in seen])
    if np.abs(end - curve.positions[-1]).max() > ASIDE:  # else it was there before anybody could say stop
        tally.check(code == way.code, f"{told}: the answer is {code}, '{text}'")
        last = stamps[np.abs(places - end).max(axis=1) > 1e-6].max(initial=said)
        tally.rested(name, max(float(last) - said, 0.0))
    off = _aside(places, curve.at(np.arange(0.0, curve.end + 0.005, 0.005)).positions)
    tally.check(off <= ASIDE, f"{told}: {off:.3g} rad beside the way")
    beyond = list(desk.beyond_limits())
    tally.check(not beyond, f"{told}: {'; '.join(beyond)}")
    tally.check(desk.free(places), f"{told}: it met the obstacle")
    desks.after(way)


def _aside(places, way):
    """Greatest distance of places (N, dof) from a way (K, dof) of straight lines."""
    begin, along = way[:-1], np.diff(way, axis=0)
    length = np.maximum((along**2).sum(axis=1), 1e-30)
    off = places[:, None] - begin
    share = np.clip((off * along).sum(axis=2) / length, 0.0, 1.0)
    return float(np.linalg.norm(off - share[:, :, None] * along, axis=2).min(axis=1).max())


ATTACK = Attack("stops", "stops while a robot moves", case)
