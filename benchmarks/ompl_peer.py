"""OMPL's RRT-Connect with coal's checks on the same hulls, as a process that prints JSON:

python -m benchmarks.ompl_peer
"""

import argparse
import json
import sys
import time

import numpy as np

from . import coal_peer
from .problems import load_problems

TIME_LIMIT_S = 10.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=10, help="take every n-th problem")
    parser.add_argument("--data", help="folder of the shared data")
    arguments = parser.parse_args()
    try:
        import ompl  # noqa: F401
    except ImportError:
        sys.exit("skipped: ompl is not installed (extra `bench`)")
    if coal_peer.unavailable():
        sys.exit(coal_peer.unavailable())
    problems = load_problems("panda", arguments.data)[:: arguments.every]
    print(json.dumps([solve(problem, arguments.data) for problem in problems]))


def solve(problem, data):
    """{solved, plan_s, short_s (planning included), length, short_length, path, short_path} of one problem."""
    from ompl import base, geometric, util

    util.setLogLevel(util.LogLevel.LOG_ERROR)
    scene = coal_peer.scene("panda", problem.obstacles, data)
    valid, dof = coal_peer.validity(scene), len(problem.start)
    space, bounds = base.RealVectorStateSpace(dof), base.RealVectorBounds(dof)
    for i, (low, high) in enumerate(zip(scene.model.lowerPositionLimit, scene.model.upperPositionLimit, strict=True)):
        bounds.setLow(i, low)
        bounds.setHigh(i, high)
    space.setBounds(bounds)
    setup = geometric.SimpleSetup(space)
    setup.setStateValidityChecker(lambda state: valid(_row(state, dof)))
    start, goal = space.allocState(), space.allocState()
    for i in range(dof):
        start[i], goal[i] = problem.start[i], problem.goals[0][i]
    setup.setStartAndGoalStates(start, goal)
    setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
    began = time.perf_counter()
    setup.solve(TIME_LIMIT_S)
    plan_s = time.perf_counter() - began
    if not setup.haveExactSolutionPath():
        return {"solved": False}
    path = _path(setup, dof)
    setup.simplifySolution()
    short_s = time.perf_counter() - began
    short_path = _path(setup, dof)
    return {
        "solved": True,
        "plan_s": plan_s,
        "short_s": short_s,
        "length": _length(path),
        "short_length": _length(short_path),
        "path": path.tolist(),
        "short_path": short_path.tolist(),
    }


def _row(state, dof):
    return np.array([state[i] for i in range(dof)])


def _path(setup, dof):
    return np.array([_row(state, dof) for state in setup.getSolutionPath().getStates()])


def _length(path):
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


if __name__ == "__main__":
    main()
