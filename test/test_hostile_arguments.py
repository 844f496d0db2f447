"""Every argument of every public callable refuses what is none by an error of the package: `soundness.arguments`, some
values for each argument. Nobody names the callables: they are found."""

import numpy as np

from soundness import arguments
from soundness.harness import Skipped

VALUES = 3  # for each argument; `make soundness` takes all of them, one after the other
SEED = 26
UNTRIED = (  # need compiled code or are still to be looked at; what is not here is held to it
    "FleetPlan",
    "BandedPlanner",
    "BlockPlanner",
    "PathSet",
    "PlanningResult",
    "Upright",
    "Free",
    "Straight",
    "Circular",
    "Arc",
    "Segment",
    "batch.",
    "learning.",
    "validator.",
    "cartesian.",
    "sequence.",
    "upright.",
    "prm.",
    "rrt.",
    "rrt_star.",
    "rrt_connect.",
    "trajectory.",
    "making.",
    "Simulation",
    "Recipe",
    "Dataset",
    "checking.",
    "reading.",
    "Ranks",
    "RobotModel.inverse_kinematics",
    "CollisionChecker",
)


def test_new_callables_are_found():
    names = arguments.publics()
    assert {
        "FleetPlanner.step",
        "rrt.solve",
        "GridMap",
        "Spline.at",
        "RobotModel.attach",
        "fleet.Settings",
    } <= names.keys()
    assert len(names) > 130 and len(arguments.targets()) > 330


def test_a_defect_is_a_finding(monkeypatch):
    def broken(count: int, name: str = "x"):
        return [0] * count

    public = arguments.Public("broken", broken)
    monkeypatch.setitem(arguments.WORKING, "broken.count", lambda: 1)
    assert arguments.attack(public, "count", "'x'").startswith("TypeError")
    assert arguments.attack(public, "count", "True").startswith("is taken")
    assert arguments.attack(public, "name", "None").startswith("is taken")
    assert arguments.attack(public, "name", "'x'") == ""


def test_hostile_arguments():
    rng, wrong = np.random.default_rng(SEED), []
    for name, argument in arguments.targets():
        if name.startswith(UNTRIED):
            continue
        for value in rng.choice(list(arguments.HOSTILE), VALUES, replace=False):
            try:
                found = arguments.attack(arguments.publics()[name], argument, str(value))
            except Skipped:
                break
            if found:
                wrong.append(f"{name}({argument}={value}): {found}")
    assert not wrong, "\n".join(wrong)
