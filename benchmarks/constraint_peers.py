"""Peers that plan under constraints by samples: OMPL's projected state space, and sscbirrt's CBiRRT.

Both get the constraint and the checks of configurations from Python: OMPL as functions that are 0 where a part is kept,
sscbirrt as a set that tells whether it contains a configuration and projects one. Each returns the path (K, dof), or
None.
"""

import importlib.util

import numpy as np

DELTA = 0.05  # rad or m: OMPL's step along the constraint
TOLERANCE = 1e-3  # of OMPL's projection, m or rad
INSIDE = 0.1  # of a tolerance or width: OMPL aims so far inside, since it ends at its functions' zeros


def unavailable(module):
    """Why a peer cannot run, or ""."""
    return "" if importlib.util.find_spec(module) else f"skipped: {module} is not installed (pip install {module})"


def ompl(problem, time_limit_s, seed):
    """RRT-Connect in a ProjectedStateSpace."""
    from ompl import base, geometric, util

    util.setLogLevel(util.LogLevel.LOG_NONE)
    util.RNG.setSeed(seed + 1)
    rule, robot = problem.rule, problem.checker.robot
    dof, parts = robot.dof, rule.parts

    class Kept(base.Constraint):
        def __init__(self):
            super().__init__(dof, len(parts), TOLERANCE)

        def function(self, x, out):
            q = np.array(x)[None]
            for k, part in enumerate(parts):
                out[k] = max(0.0, float(part.excess(part.measure(q))[0] + INSIDE * margin_of(part)))

        def jacobian(self, x, out):
            q = np.array(x)[None]
            for k, part in enumerate(parts):
                measured, J = part.measure_and_slope(q)
                values, _, slopes = part.pull(measured)
                worst = int(values[0].argmax())
                outside = values[0, worst] + INSIDE * margin_of(part) > 0
                out[k, :] = slopes[0, worst] @ J[0] if outside else 0.0

    ambient, bounds = base.RealVectorStateSpace(dof), base.RealVectorBounds(dof)
    lower, upper = ends_of(problem)
    for k in range(dof):
        bounds.setLow(k, float(lower[k]))
        bounds.setHigh(k, float(upper[k]))
    ambient.setBounds(bounds)
    constraint = Kept()
    space = base.ProjectedStateSpace(ambient, constraint)
    information = base.ConstrainedSpaceInformation(space)
    space.setDelta(DELTA)
    setup = geometric.SimpleSetup(information)

    def row(state):
        return np.array([state[k] for k in range(dof)])

    setup.setStateValidityChecker(lambda state: bool(problem.checker.configurations_valid(row(state)[None])[0]))
    start, goal = space.allocState(), space.allocState()
    start.copy(problem.start.astype(float))
    goal.copy(problem.goal.astype(float))
    setup.setStartAndGoalStates(start, goal)
    setup.setPlanner(geometric.RRTConnect(information))
    setup.solve(time_limit_s)
    if not setup.haveExactSolutionPath():
        return None
    path = setup.getSolutionPath()
    path.interpolate()
    return np.array([row(state) for state in path.getStates()])


def margin_of(part):
    """What projections aim at inside a part, m or rad."""
    if hasattr(part, "volumes"):
        return part.volumes[0].margin
    return float(np.min(getattr(part, "tolerance", 0.1)))


def sscbirrt(problem, time_limit_s, seed):
    """CBiRRT over sets of our own."""
    from sscbirrt import CBiRRT, CBiRRTConfig, FiniteSet, PlanningProblem

    rule, checker = problem.rule, problem.checker

    class Kept:
        def contains(self, q):
            return bool(rule.satisfied(q[None])[0])

        def project(self, q_previous, q_proposed):
            q, found = rule.project(q_proposed[None])
            return q[0] if found[0] else None

    class Robot:
        dof, joint_limits, joint_names = checker.robot.dof, ends_of(problem), checker.robot.joint_names

        def forward_kinematics(self, q):
            return checker.robot.link_poses(q)[checker.robot.tip_link][0]

    class Checks:
        def is_valid(self, q):
            return bool(checker.configurations_valid(np.asarray(q)[None])[0])

    planner = CBiRRT(Robot(), collision_checker=Checks(), config=CBiRRTConfig(timeout=time_limit_s))
    ends = (FiniteSet([q], metric=planner.space.distance) for q in (problem.start, problem.goal))
    result = planner.solve(PlanningProblem(planner.space, *ends, Checks(), Kept()), seed=seed)
    return np.array(result.path) if result.success else None


def ends_of(problem):
    """(dof,) lower and upper values of the joints."""
    robot = problem.checker.robot
    return np.maximum(robot.lower, -2 * np.pi), np.minimum(robot.upper, 2 * np.pi)


SAMPLED = {"OMPL, projected state space": ("ompl", ompl), "sscbirrt": ("sscbirrt", sscbirrt)}
