"""Pairs of a robot's links, without an SRDF: what is left out as never meeting is led as near as can be, and what is
checked is led into contact. Pinocchio places the links, coal measures, and a search from random places descends."""

import numpy as np
from random_urdf import random_urdf

from benchmarks.robots import pieces_of
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.urdf.self_collision import ALWAYS, NEVER
from gpu_planners.errors import RobotDescriptionError
from gpu_planners.verify import CoalScene

from .harness import ACCURACY, NEAR, Attack, Skipped, numbers

SPACING = 8  # places looked at in one step of a search
STEPS = 60
TRIES = 3  # searches for a pair
PAIRS = 4  # of each sort in a case
TOUCH = 1e-4  # metres: links that are no farther apart touch


def case(run, rng, number, tally):
    """Every other case is a random tree, all joints planned; a real robot's other joints move too."""
    if number % 2:
        text = random_urdf(rng, int(rng.integers(2, 8)), almost_parallel=rng.random() < 0.2, shapes=True)
        try:
            robot, name, scene_of = load_urdf(text), "random", lambda pairs: CoalScene(text, self_pairs=pairs)
        except RobotDescriptionError as error:  # no joint of it moves
            return tally.error(error)
    else:
        rig = run.rig(number // 2)
        robot, name = rig.robot, rig.name
        pieces = pieces_of(robot)

        def scene_of(pairs):
            return CoalScene(rig.urdf, meshes=pieces, package_dirs=[rig.share], self_pairs=pairs)

    never = [(a, b) for a, b, why in robot.disabled_pairs if why == NEVER]
    links = robot.shape_link[robot.self_collision_pairs].reshape(-1, 2)
    checked = sorted({tuple(robot.link_names[i] for i in pair) for pair in links.tolist()})
    if not never and not checked:
        raise Skipped("")
    for pair in _some(rng, never):
        _never(name, scene_of([pair]), pair, rng, tally)
    for pair in _some(rng, robot.touching_pairs):
        _touching(name, scene_of([pair]), pair, tally)
    try:
        checkers = {device: CollisionChecker(robot, CollisionWorld(), device) for device in run.devices}
    except RobotDescriptionError as error:  # its joints lead so far away that single precision is too coarse
        return tally.error(error)
    for pair in _some(rng, checked):
        _checked(name, robot, checkers, scene_of([pair]), pair, rng, tally)


def _some(rng, pairs):
    return [pairs[i] for i in rng.permutation(len(pairs))[:PAIRS]]


def _never(name, scene, pair, rng, tally):
    for _ in range(TRIES):
        distance, q = _descend(scene, rng, -np.inf)
        told = f"{name}: {pair} never meet, but are {1e6 * distance:.4g} um apart at {numbers(q)}"
        tally.check(distance >= ACCURACY - NEAR, told)


def _touching(name, scene, pair, tally):
    limits = [np.clip(0.0, low, high) for low, high in zip(scene.lower, scene.upper, strict=True)]
    distance = scene.distance(limits)
    told = f"{name}: {pair} touch by design ({ALWAYS}), but are {1e6 * distance:.4g} um apart in the neutral pose"
    tally.check(distance <= TOUCH + NEAR, told)


def _checked(name, robot, checkers, scene, pair, rng, tally):
    """Only where all joints that move the pair are planned can it be asked for."""
    at = [scene.joint_names.index(joint) for joint in robot.joint_names]
    distance, q = _descend(scene, rng, -1e-3, [i for i in range(len(scene.joint_names)) if i not in at])
    if distance < -NEAR:
        for device, checker in checkers.items():
            free = checker.configurations_valid(q[None, at])[0]
            told = f"{device} calls {name} free where {pair} overlap by {-1e6 * distance:.4g} um: {numbers(q[at])}"
            tally.check(not free, told)


def _descend(scene, rng, enough, held=()):
    """(signed distance, q) of the nearest that one search finds within the limits; `held` joints stay neutral."""
    low, high = np.maximum(scene.lower, -np.pi), np.minimum(scene.upper, np.pi)
    stay = np.clip(0.0, low, high)
    free = np.ones(len(low), bool)
    free[list(held)] = False
    q = np.where(free, rng.uniform(low, high), stay)
    least, step = scene.distance(q), np.where(free, (high - low) / 2, 0.0)
    for _ in range(STEPS):
        if least <= enough or step.max(initial=0.0) < 1e-5:
            break
        chosen = rng.random((SPACING, len(q))) < 0.5
        news = np.clip(q + step * rng.uniform(-1, 1, (SPACING, len(q))) * chosen, low, high)
        distances = [scene.distance(new) for new in news]
        best = int(np.argmin(distances))
        if distances[best] < least:
            q, least = news[best], distances[best]
        else:
            step = step * 0.6
    return least, q


ATTACK = Attack("pairs", "pairs of links: left out, and checked", case)
