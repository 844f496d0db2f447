"""Obstacles put at a gap of +-1e-6 to 1e-2 m from a robot's body, and self-collisions bisected to such gaps: what
overlaps is never free; how wide a gap is refused is recorded. Clearances must not exceed the true gap."""

import numpy as np

from .harness import NEAR, Attack, Skipped, numbers
from .obstacles import direction, random_obstacle
from .robots import free_of

AROUND = 24  # configurations close to the constructed one


def case(run, rng, number, tally):
    rig = run.rig(number)
    contact = _self_contact if rng.random() < 0.25 else _contact
    contact(rig, rng, tally)


def random_gap(rng):
    return rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -2)


def close_to(rng, q):
    """(AROUND, dof): q (dof,), and others 1e-7 to 1e-2 rad or m away."""
    away = 10 ** rng.uniform(-7, -2, (AROUND, 1)) * rng.normal(size=(AROUND, len(q)))
    away[0] = 0
    return q + away


def touching(rig, rng, gap):
    """(configurations (AROUND, dof), Obstacle): the first has an obstacle at `gap` from one of its bodies."""
    q = rig.configurations(rng, 1)
    if not len(q) or not rig.oracle.bodies:
        raise Skipped(f"{rig.name}: no configuration without self-collision was drawn")
    body = int(rng.integers(rig.oracle.bodies))
    return close_to(rng, q[0]), rig.oracle.touching(q[0], body, random_obstacle(rng), direction(rng), gap)


def _contact(rig, rng, tally):
    q, obstacle = touching(rig, rng, random_gap(rng))
    rig.put([obstacle])
    free, gaps = free_of(rig.checkers, q), rig.oracle.gaps(q, [obstacle])

    def what(i):
        return f"q = {numbers(q[i])}, {obstacle}"

    # the package cuts a mesh into pieces that cover it: they may refuse more than its triangles
    tally.verdicts(rig.name, free, gaps, what, widest=rig.bare.configurations_valid(q) & (obstacle.kind != "mesh"))
    raw = rig.oracle.gaps(q[:4], [obstacle], raw=True)
    for device, verdict in free.items():
        for i in np.flatnonzero(verdict[:4] & (raw < -NEAR)):
            if rig.oracle.triangle_gap(q[i], obstacle) > 0:  # coal's tree of triangles was wrong
                tally.contradicted += 1
                continue
            tally.fail(
                f"{device} calls {rig.name} free at an overlap of {-1e6 * raw[i]:.3g} um with its raw mesh: {what(i)}"
            )
    clear = rig.checkers[rig.devices[0]].clearances(q[:4], up_to=0.1)
    tally.check(
        (clear <= gaps[:4] + NEAR).all() or (gaps[:4] < 0).any(),
        f"{rig.name}: clearances {clear} where the gaps are {gaps[:4]}: {what(0)}",
    )


def _self_contact(rig, rng, tally):
    """Between a free and a colliding configuration lies one whose least gap is what is wanted."""
    q = rig.configurations(rng, 64, free=False)
    verdict = rig.bare.configurations_valid(q)
    if verdict.all() or not verdict.any():
        raise Skipped(f"{rig.name}: no self-collision, or nothing else, was drawn")
    free, colliding = q[verdict][0], q[~verdict][0]
    wanted = random_gap(rng)
    for _ in range(36):
        middle = (free + colliding) / 2
        if rig.oracle.self_gaps(middle[None])[0] > wanted:
            free = middle
        else:
            colliding = middle
    q = close_to(rng, colliding)
    rig.put([])
    # beyond the limits of a sliding joint nothing is called free, whatever the gap
    inside = (~rig.prismatic | (q >= rig.robot.lower) & (q <= rig.robot.upper)).all(axis=1)
    tally.verdicts(
        rig.name,
        free_of(rig.checkers, q),
        rig.oracle.self_gaps(q),
        lambda i: f"self-collision at q = {numbers(q[i])}",
        widest=inside,
    )


ATTACK = Attack("contacts", "obstacles and links at gaps of +-1 um to 1 cm", case)
