"""A world that is changed again and again: after each change its checker answers as a new one on a new world, and as
coal."""

import numpy as np

from gpu_planners.arm import CollisionWorld

from .harness import Attack, Skipped, numbers
from .obstacles import random_obstacle
from .robots import free_of

CHANGES = 12
NAMES = tuple("abcdefgh")


def case(run, rng, number, tally):
    rig = run.rig(number)
    q = rig.configurations(rng, 48)
    if len(q) < 8:
        raise Skipped(f"{rig.name}: few configurations without self-collision were drawn")
    present, done = {}, []
    rig.world.clear()
    for _ in range(CHANGES):
        done.append(_change(rng, rig.world, present))
        fresh = CollisionWorld()
        for name, obstacle in present.items():
            obstacle.add_to(fresh, name)
        new = rig.checkers_of(fresh)
        free, expected = free_of(rig.checkers, q), free_of(new, q)
        gaps = rig.oracle.gaps(q, list(present.values()), enough=0.01)
        solid = all(obstacle.kind != "mesh" for obstacle in present.values())
        tally.verdicts(
            rig.name, free, gaps, lambda i: f"after {done}, q = {numbers(q[i])}", widest=np.full(len(q), solid)
        )
        half = len(q) // 2
        for device in rig.devices:
            tally.check(
                (free[device] == expected[device]).all(),
                f"{device}: {rig.name} answers otherwise on a new world, after {done}",
            )
            motions, expected_motions = (
                c[device].motions_valid(q[:half], q[half : 2 * half]) for c in (rig.checkers, new)
            )
            tally.check(
                (motions == expected_motions).all(),
                f"{device}: {rig.name}'s motions differ on a new world, after {done}",
            )


def _change(rng, world, present):
    """Change the world and `present` {name: Obstacle} alike; -> what was done."""
    kind = rng.choice(["put", "move", "remove", "clear"], p=[0.55, 0.25, 0.17, 0.03])
    name = str(rng.choice(NAMES))
    if kind == "clear":
        world.clear()
        present.clear()
        return "clear"
    if kind == "remove" and present:
        name = str(rng.choice(list(present)))
        world.remove(name)
        del present[name]
        return f"remove {name}"
    if kind == "move" and present:  # the same shape elsewhere
        name = str(rng.choice(list(present)))
        present[name] = present[name].moved(rng.normal(size=3) * 0.2)
    else:
        obstacle = random_obstacle(rng, 0.02, 0.5)
        present[name] = obstacle.at(rng.normal(size=3) * 0.6)
    present[name].add_to(world, name)
    return f"{name} = {present[name]}"


ATTACK = Attack("changes", "worlds that are changed, against new ones", case)
