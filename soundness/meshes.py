"""Specks on the triangles of the robots' collision meshes, placed by pinocchio: the convex pieces must hold them
all."""

import numpy as np

from .harness import Attack, Skipped, numbers
from .obstacles import speck
from .robots import free_of

SPECKS = 12


def case(run, rng, number, tally):
    rig = run.rig(number)
    meshes = [
        body
        for body in range(len(rig.oracle.placed(np.zeros(rig.robot.dof), raw=True)))
        if rig.oracle.triangles(body) is not None
    ]
    if not meshes:
        raise Skipped(f"{rig.name} has no meshes")
    q = rig.configurations(rng, 1)
    if not len(q):
        raise Skipped(f"{rig.name}: no configuration without self-collision was drawn")
    body = int(rng.choice(meshes))
    triangles = rig.oracle.triangles(body)
    _, (R, t), _ = rig.oracle.placed(q[0], raw=True)[body]
    corners = triangles[rng.integers(len(triangles), size=SPECKS)]
    share = rng.dirichlet(np.ones(3), SPECKS)
    share[::4] = np.eye(3)[rng.integers(3, size=len(share[::4]))]  # some at a vertex
    points = np.einsum("nk,nkx->nx", share, corners) @ R.T + t
    specks = [speck(rng, point, 10 ** rng.uniform(-5.3, -3)) for point in points]
    for obstacle in specks:
        rig.put([obstacle])
        gap = -obstacle.radius / np.sqrt(3) if obstacle.kind == "box" else -obstacle.radius
        tally.verdicts(
            rig.name,
            free_of(rig.checkers, q),
            [gap],
            lambda _, o=obstacle: f"q = {numbers(q[0])}, on a triangle of body {body}: {o}",
        )
    rig.put(specks)
    for device, checker in rig.checkers.items():
        unseen = {str(i) for i in range(SPECKS)} - {name for pair in checker.colliding_pairs(q[0]) for name in pair}
        tally.check(
            not unseen, f"{device}: colliding_pairs of {rig.name} misses specks {sorted(unseen)} at q = {numbers(q[0])}"
        )


ATTACK = Attack("meshes", "specks on the triangles of raw meshes", case)
