"""Motions that lead through specks, thin rods, blades, grazing obstacles and self-collisions: none may be proven
free."""

import numpy as np

from gpu_planners.arm import MotionCheck
from gpu_planners.errors import GpuPlannersError

from .harness import NEAR, Attack, Skipped, numbers
from .obstacles import blade, direction, random_obstacle, rod, speck

MOTIONS = 16


def case(run, rng, number, tally):
    rig = run.rig(number)
    if rng.random() < 0.15:
        through_self_collision(rig, rng, tally)
    else:
        through_obstacle(rig, rng, tally)


def through_obstacle(rig, rng, tally, checkers=None, margin=0.0):
    """Some body's surface lies in a thin obstacle, or close to one, somewhere along each motion."""
    checkers = checkers or rig.checkers
    q, body = rig.configurations(rng, 1), int(rng.integers(max(rig.oracle.bodies, 1)))
    if not len(q) or not rig.oracle.bodies:
        raise Skipped(f"{rig.name}: no configuration without self-collision was drawn")
    q, grazing, beyond = q[0], rng.random() < 0.3, rng.random() < 0.2
    if beyond:  # values that no limit holds, and that no bound may rely on
        inside = q
        q = q + rng.choice([-1, 1], len(q)) * np.where(
            rig.prismatic, rng.uniform(1, 8, len(q)), (rng.random(len(q)) < 0.3) * rig.spread
        )
        moved = [
            np.linalg.norm(a[1][1] - b[1][1])
            for a, b in zip(rig.oracle.placed(inside), rig.oracle.placed(q), strict=True)
        ]
        body = int(rng.choice(np.argsort(moved)[-3:]))  # one that it moves out far
    if grazing:
        obstacle = rig.oracle.touching(
            q,
            body,
            random_obstacle(rng, kinds=("box", "cylinder", "sphere", "convex")),
            direction(rng),
            margin + 10 ** rng.uniform(-5, -2.3),
        )
    else:
        point, normal = rig.oracle.point_on(q, body, direction(rng))
        thin = (speck, rod, blade)[rng.integers(3)]
        obstacle = thin(rng, point + margin * 0.9 * normal, 10 ** rng.uniform(-4.3, -3))
    rig.put([obstacle])
    q_from, q_to, at = motions_through(rig, rng, q, inside=not beyond and rng.random() < 0.7)
    _judge(
        rig,
        tally,
        checkers,
        q_from,
        q_to,
        at,
        [obstacle],
        lambda rows: rig.oracle.gaps(rows, [obstacle]) - margin,
        str(obstacle),
        densely=grazing,
    )


def through_self_collision(rig, rng, tally):
    q = rig.configurations(rng, 64, free=False)
    q = q[~rig.bare.configurations_valid(q)]
    if not len(q):
        raise Skipped(f"{rig.name}: no self-collision was drawn")
    rig.put([])
    q_from, q_to, at = motions_through(rig, rng, q[0], inside=rng.random() < 0.5, free=False)
    _judge(rig, tally, rig.checkers, q_from, q_to, at, [], rig.oracle.self_gaps, "self-collision", densely=False)


def motions_through(rig, rng, q, inside, free=True):
    """(q_from, q_to) (N, dof) of motions that pass through q (dof,), and where they do: (N,) in 0..1.

    Short or long; some turn continuous joints several times.
    inside: only motions within the limits
    free: only motions that are proven free where there is no obstacle, so that the obstacle alone can decide
    """
    robot, n = rig.robot, 4 * MOTIONS if free else MOTIONS
    v = rng.normal(size=(n, robot.dof)) * (rng.random((n, robot.dof)) < rng.choice([0.3, 1.0]))
    v *= rig.spread * 10 ** rng.uniform(-2.5, 0, (n, 1))
    at = np.where(rng.random(n) < 0.2, rng.choice([0.0, 1.0], n), rng.random(n))
    q_from, q_to = q - at[:, None] * v, q + (1 - at)[:, None] * v
    ends = np.stack([q_from, q_to])
    if inside:
        kept = ((ends >= robot.lower) & (ends <= robot.upper) | robot.continuous).all(axis=(0, 2))
        q_from, q_to, at = q_from[kept], q_to[kept], at[kept]
    if rng.random() < 0.3:
        turns = 2 * np.pi * rng.integers(-3, 4, robot.dof) * robot.continuous
        q_from, q_to = q_from + turns, q_to + turns
    if free and len(q_from):
        valid = _allowed(lambda rows: rig.bare.motions_valid(q_from[rows], q_to[rows]), len(q_from))
        q_from, q_to, at = q_from[valid], q_to[valid], at[valid]
    return q_from[:MOTIONS], q_to[:MOTIONS], at[:MOTIONS]


def _judge(rig, tally, checkers, q_from, q_to, at, obstacles, gaps, what, densely):
    proven = {}
    for device, checker in checkers.items():
        proven[device] = _allowed(
            lambda rows, c=checker: np.asarray(c.motions_valid(q_from[rows], q_to[rows])), len(at), tally
        )
    for i in range(len(at)):
        accepted = [device for device in checkers if proven[device][i]]
        if not densely:
            least = gaps((q_from[i] + at[i] * (q_to[i] - q_from[i]))[None])[0]
        if densely or (accepted and least >= -NEAR):
            least = rig.oracle.least_gap(q_from[i], q_to[i], gaps, known=[at[i]])[0]
        tally.verdicts(
            rig.name,
            {device: verdict[i : i + 1] for device, verdict in proven.items()},
            [least],
            lambda _, i=i: f"motion {numbers(q_from[i])} -> {numbers(q_to[i])}, {what}",
            grey=MotionCheck().step,
        )


def _allowed(verdicts, count, tally=None):
    """(count,) bool of verdicts(rows); rows that the package refuses by an error are False."""
    if not count:
        return np.zeros(0, bool)
    try:
        return verdicts(np.arange(count))
    except GpuPlannersError:
        result = np.zeros(count, bool)
        for i in range(count):
            try:
                result[i] = verdicts(np.array([i]))[0]
            except GpuPlannersError as error:
                if tally:
                    tally.error(error)
        return result


ATTACK = Attack("motions", "motions through specks, rods, blades, grazing obstacles", case)
