"""A margin kept from obstacles: nothing nearer than it, less the accuracy, is free or proven; how much farther is
refused is recorded as the gap beyond the margin."""

from .contacts import random_gap, touching
from .harness import ACCURACY, Attack, numbers
from .motions import through_obstacle
from .robots import free_of

MARGINS = (0.0005, 0.005, 0.03, 0.15)  # metres


def case(run, rng, number, tally):
    margin = float(rng.choice(MARGINS))
    rig = run.rig(number)
    checkers = rig.with_margin(margin)
    if rng.random() < 0.3:
        return through_obstacle(rig, rng, tally, checkers, margin)
    q, obstacle = touching(rig, rng, margin + random_gap(rng))
    rig.put([obstacle])
    free, gaps = free_of(checkers, q), rig.oracle.gaps(q, [obstacle])
    tally.verdicts(
        rig.name,
        free,
        gaps - margin,
        lambda i: f"margin {margin}, q = {numbers(q[i])}, {obstacle}",
        allowed=ACCURACY,
        widest=rig.bare.configurations_valid(q) & (obstacle.kind != "mesh"),
    )


ATTACK = Attack("margins", "gaps around a margin of 0.5 mm to 15 cm", case)
