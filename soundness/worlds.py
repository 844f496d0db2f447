"""Huge worlds: thousands of obstacles far away and a few near ones. Only the near ones may decide, wherever they
stand in the order, and coal says how."""

import numpy as np

from .contacts import random_gap, touching
from .harness import Attack, numbers
from .obstacles import random_obstacle, rotation
from .robots import free_of

FAR = (20.0, 90.0)  # metres from the origin, where the far obstacles lie
# (kind, fewest, most): the last ones exceed what 24 bits, or the upper 24 of 32, can number
CROWDS = (("primitives", 1000, 20_000), ("small hulls", 200, 1000), ("large hulls", 20, 60))
GREAT_CROWDS = (
    ("primitives", 20_000, 100_000),
    ("small hulls", 1000, 3000),
    ("large hulls", 100, 500),
    ("pairs", 100_000, 140_000),
)
GREAT_EVERY = 12  # cases


def case(run, rng, number, tally):
    crowds = GREAT_CROWDS if number % GREAT_EVERY == GREAT_EVERY - 1 else CROWDS
    kind, fewest, most = crowds[
        number // GREAT_EVERY % len(crowds) if crowds is GREAT_CROWDS else rng.integers(len(crowds))
    ]
    rig = run.rig_named("many-128") if kind == "pairs" else run.rig(number)
    count = int(np.exp(rng.uniform(np.log(fewest), np.log(most))))
    q, first = touching(rig, rng, random_gap(rng))
    near = [first]
    while len(near) < 3:
        other = random_obstacle(rng, kinds=("box", "sphere", "cylinder", "convex"))
        other = other.moved(rng.normal(size=3) * 2 - other.centre)
        if rig.oracle.gaps(q[:1], [other], enough=0.05)[0] > 0.05:
            near.append(other)
    random_q = rig.configurations(rng, 40)
    q = np.concatenate([q, random_q])
    gaps, alone = rig.oracle.gaps(q, near), rig.bare.configurations_valid(q)
    answers, crowd_seed = [], rng.integers(1 << 32)
    for place in (0, count) if crowds is GREAT_CROWDS else (0, count // 2, count):
        rig.world.clear()
        crowd_rng = np.random.default_rng(crowd_seed)
        shapes = _hulls(crowd_rng, 1000 if kind == "large hulls" else 12) if "hulls" in kind else None
        for i in range(count + 1):
            if i == place:
                for k, obstacle in enumerate(near):
                    obstacle.add_to(rig.world, f"near {k}")
            if i < count:
                _add_far(crowd_rng, rig.world, i, shapes)
        free = free_of(rig.checkers, q)
        tally.verdicts(
            rig.name,
            free,
            gaps,
            lambda i, place=place: (
                f"{count} {kind} far away, the near ones at {place}, "
                f"q = {numbers(q[i])}, near: {'; '.join(map(str, near))}"
            ),
            widest=alone & (first.kind != "mesh"),
        )
        answers.append(free[rig.devices[0]])
    tally.check(
        all((answer == answers[0]).all() for answer in answers),
        f"{rig.name}: the order of {count} {kind} changes the answer, q = {numbers(q)}",
    )
    rig.world.clear()


def _hulls(rng, vertices):
    """A few vertex sets (V, 3): unit balls."""
    points = rng.normal(size=(4, vertices, 3))
    return points / np.linalg.norm(points, axis=2, keepdims=True)


def _add_far(rng, world, i, hulls):
    pose = rotation(rng)
    away = rng.normal(size=3)
    pose[:3, 3] = away / np.linalg.norm(away) * rng.uniform(*FAR)
    if hulls is not None:
        world.add_convex(f"far {i}", hulls[i % len(hulls)] * rng.uniform(0.1, 1.0), pose)
    elif i % 3 == 0:
        world.add_box(f"far {i}", rng.uniform(0.05, 1.0, 3), pose)
    elif i % 3 == 1:
        world.add_sphere(f"far {i}", rng.uniform(0.05, 1.0), pose)
    else:
        world.add_cylinder(f"far {i}", rng.uniform(0.05, 1.0), rng.uniform(0.05, 1.0), pose)


ATTACK = Attack("worlds", "10^3 to 10^5 obstacles far away, some near", case)
