"""Every argument of every public callable refuses what is none by an error of the package: `soundness.arguments`, some
values for each argument. Nobody names the callables: they are found."""

import enum
import importlib
import inspect

import numpy as np
import pytest

from gpu_planners.arm import rrt
from gpu_planners.fleet import FleetPlanner
from gpu_planners.grid import GridMap
from soundness import arguments
from soundness.harness import Skipped

VALUES = 3  # for each argument; `python -m soundness --only arguments` takes all of them
SEED, GROUPS = 26, 8


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
    attacked = set(arguments.targets())
    for name, function in (("FleetPlanner.step", FleetPlanner.step), ("rrt.solve", rrt.solve), ("GridMap", GridMap)):
        taken = [argument for argument in inspect.signature(function).parameters if argument != "self"]
        assert taken and {(name, argument) for argument in taken} <= attacked


def test_what_the_reference_shows_is_attacked():
    """Each function and class of its modules, found here by name alone."""
    attacked = {public.call for public in arguments.publics().values()} | {
        public.owner for public in arguments.publics().values()
    }
    shown = {}
    for name in arguments.reference_modules():
        module = importlib.import_module(name)
        own = [each for each, value in vars(module).items() if getattr(value, "__module__", "") == name]
        for each in getattr(module, "__all__", None) or own:
            if not each.startswith("_") and callable(value := getattr(module, each)):
                shown[f"{name}.{each}"] = value
    assert "gpu_planners.arm.swept.swept_boxes" in shown and len(shown) > 40
    assert not {name for name, value in shown.items() if value not in attacked and not is_exempt(value)}


def is_exempt(value):
    """Errors, enumerations, what only the package makes or calls, and `cuda_problem`, which takes nothing."""
    if value.__name__ in {*arguments.MADE_HERE, *arguments.OWN, "cuda_problem"}:
        return True
    return inspect.isclass(value) and issubclass(value, (Exception, enum.Enum))


def test_a_defect_is_a_finding(monkeypatch):
    def broken(count: int, name: str = "x"):
        return [0] * count

    public = arguments.Public("broken", broken)
    monkeypatch.setitem(arguments.WORKING, "broken.count", lambda: 1)
    assert arguments.attack(public, "count", "'x'").startswith("TypeError")
    assert arguments.attack(public, "count", "True").startswith("is taken")
    assert arguments.attack(public, "name", "None").startswith("is taken")
    assert arguments.attack(public, "name", "'x'") == ""


@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_arguments(group):
    rng, wrong = np.random.default_rng(SEED), []
    for name, public in sorted(arguments.publics().items())[group::GROUPS]:
        try:
            if why := arguments.unready(public):
                wrong.append(why)
                continue
            for argument in (argument for owner, argument in arguments.targets() if owner == name):
                for value in rng.choice(list(arguments.HOSTILE), VALUES, replace=False):
                    if found := arguments.attack(public, argument, str(value)):
                        wrong.append(f"{name}({argument}={value}): {found}")
        except Skipped:
            continue
    assert not wrong, "\n".join(wrong)
