"""A FleetPlanner made ready before the judge's first step."""

import os
import time
from dataclasses import replace

import numpy as np

from gpu_planners.device import resolve_device
from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.grid import GridMap

BUDGET = "GPU_PLANNERS_BUDGET_S"  # seconds a step, of the environment
STEPPED = "gpu_planners: a step"  # is printed with each step, where the judge prints nothing
SCHEDULE = 0.3  # share of a step's budget for better choices of tasks
GOALS = 3  # of an agent whose fields are kept: its own, and 1.5 first errands of tasks, with room to spare
STEPS = 4  # before the first one
FIRST = 0.8  # share of the time limit before the first step that fields get
LATER = 0.5  # share of a step's time limit that fields get
MEMORY = 32 << 30  # bytes of fields on a host
PLANNED = 25  # fields a second that any host plans


def prepared_fleet(
    free: np.ndarray, agents: int, limit_s: float, budget_s: float, settings: Settings | None = None, goals: int = 1
) -> FleetPlanner:
    """A fleet of agents that turn, with compiled code and fields of tiles that may become goals, as many as time and
    memory allow; its agents are anywhere.

    free: (rows, cols) uint8; limit_s: seconds that this may take, but for a fifth; budget_s: of a step
    settings: but for the memory; goals: of an agent, those of tasks that it may get among them
    """
    until = time.monotonic() + FIRST * limit_s
    field, few = (
        4 * (free.shape[0] + 2) * (free.shape[1] + 2),
        max(goals * agents + agents // 4, int(PLANNED * limit_s)),
    )
    settings = replace(settings or Settings(), memory_limit_bytes=_memory(few * field))
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", settings=settings)
    tiles = np.random.default_rng(0).permutation(np.argwhere(free))
    fleet.start(tiles[:agents])  # anywhere: goals are those of agents
    for _ in range(STEPS):  # compiles
        fleet.step(np.where(np.arange(agents)[:, None] < 100, tiles[:agents][::-1], -1), budget_s)
    ahead = tiles[: settings.memory_limit_bytes // field]
    for goals in np.r_[ahead, np.full((-len(ahead) % agents, 2), -1)].reshape(-1, agents, 2):
        if time.monotonic() >= until:
            break
        fleet.prepare(goals, max(0.0, until - time.monotonic()), 0, budget_s)
    return fleet


def _memory(few):
    """Limit of fields, in bytes: by default on a GPU; on a host room for `few` bytes, which is filled before the first
    step. If it grew later, fields would be copied, for seconds."""
    if resolve_device("auto") != "cpu":
        return Settings().memory_limit_bytes
    return min(few, MEMORY, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
