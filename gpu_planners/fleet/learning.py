"""Guidance learnt offline: a fleet works, and moves to tiles where it waits get dearer."""

import numpy as np

from ..errors import GridMapError
from ..grid.checks import whole
from ..grid.maps.generated import largest_component
from ..grid.maps.grid_map import GridMap
from ..parallel.sampling import folded_seed
from .arguments import checked_grid
from .guidance import GUIDANCE, Guidance
from .planner import FleetPlanner
from .settings import Settings

MOST = 2**31 - 1  # agents, rounds, steps


def learn_guidance(
    grid: GridMap,
    agents: int,
    motion: str = "turning",
    device: str = "auto",
    settings: Settings | None = None,
    rounds: int = 6,
    steps: int = 300,
    seed: int = 0,
) -> tuple[Guidance, list[float]]:
    """Guidance under which so many agents with random errands reached most goals.

    The first rounds try each kind of guidance that needs no learning; each later one makes moves dearer to tiles where
    agents waited in the round before.

    rounds: at least 1; steps: of each round, at least 1; seed: any integer
    -> the best guidance; (rounds,) goals reached in a step, of each round

    Raises SettingsError for numbers that are not positive, GridMapError where the agents have no place.
    """
    checked_grid(grid)
    agents, rounds, steps = (
        whole(name, value, 1, MOST) for name, value in (("agents", agents), ("rounds", rounds), ("steps", steps))
    )
    kinds = [make(grid) for make in GUIDANCE.values()]
    best, base = kinds[0], kinds[0].finer()
    reached: list[float] = []
    crowds = np.zeros(grid.shape)
    for number in range(rounds):
        guidance = kinds[number] if number < len(kinds) else base.with_crowds(crowds)
        goals, waited = _work(FleetPlanner(grid, motion, device, settings, guidance), agents, steps, folded_seed(seed))
        better = not reached or goals > max(reached)
        reached.append(goals)
        if better:
            best = guidance
        if number >= len(kinds):
            crowds = (crowds + waited) / 2
        elif better:
            base, crowds = guidance.finer(), waited
    return best, reached


def _work(fleet, agents, steps, seed):
    """-> goals reached in a step; (rows, cols) the part of the time that somebody waited on each tile"""
    rng = np.random.default_rng(seed)
    tiles = np.argwhere(largest_component(fleet.grid))
    if agents > len(tiles):
        raise GridMapError(f"agents is {agents}; allowed: at most {len(tiles)}, the tiles of the map's largest part")
    fleet.start(rng.permutation(tiles)[:agents], rng.integers(4, size=agents))
    goals, done, waited = tiles[rng.integers(len(tiles), size=agents)], 0, np.zeros(fleet.grid.shape)
    for _ in range(steps):
        before, faces = fleet.positions, fleet.headings
        fleet.step(goals)
        now = fleet.positions
        stood = (before == now).all(axis=1) & (faces == fleet.headings)
        np.add.at(waited, tuple(now[stood].T), 1 / steps)
        there = (now == goals).all(axis=1)
        done += int(there.sum())
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
    return done / steps, waited
