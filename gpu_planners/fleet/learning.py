"""Guidance learnt offline: directions and weights together, by evolution on our own simulator.

A candidate is the logarithm of what each move costs. A child adds noise to it that is common to a straight run of free
tiles, up for one way along it and down for the other (its direction, and how strict that is), and noise common to a
square of tiles (their weight); some children also find tiles dearer where agents waited. The next parent is the mean of
the best children, which averages the noise of simulations away: a (mu/mu, lambda) evolution strategy (Beyer, The Theory
of Evolution Strategies, 2001). Children of a round do the same errands; more errands are for the better half of them
only (successive halving: Jamieson and Talwalkar, AISTATS 2016).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import instance, whole
from ..distributed.executors import Split, devices_of, spread
from ..distributed.progress import Progress, told
from ..errors import GridMapError, SettingsError, shown
from ..grid.maps.generated import largest_component
from ..grid.maps.grid_map import GridMap
from ..parallel.sampling import folded_seed
from .arguments import checked_tiles
from .guidance import MOST_DIFFERENCE, Guidance, one_way, suited
from .motion import EAST, NORTH, SOUTH, WEST
from .planner import FleetPlanner
from .settings import Settings

CROWDED = 3  # what a candidate's costs may rise by at most where somebody always waits, times the noise
MOST = 2**31 - 1  # agents, rounds, steps, children
HALVINGS = 3  # sets of errands of a round; after each the better half of the children goes on
TRIALS = 6  # sets of errands by which parents are compared, and nothing else
AGAINST = 5, 10, 20, 40  # initial penalties of a move against a lane
NOISE = 0.3, 0.1  # standard deviation of logarithms, in the first and in the last round
SQUARES = 1, 2, 4, 8  # tiles of a side, by lot
UNIT = 8  # cost of an ordinary move in what is learnt
STRICTEST = 15  # times that, what a move costs at most


def learn_guidance(
    grid: GridMap,
    agents: int,
    motion: str = "turning",
    device: str = "auto",
    settings: Settings | None = None,
    rounds: int = 6,
    steps: int = 300,
    seed: int = 0,
    *,
    children: int = 16,
    goals: ArrayLike | None = None,
    executor: Executor | None = None,
    devices: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    each: Callable[[Guidance, list[float]], object] | None = None,
) -> tuple[Guidance, list[float]]:
    """Guidance under which so many agents with random errands reach most goals, in steps without a budget.

    The first round compares what needs no learning, shortest paths and lanes of several strictness; later ones change
    directions and weights of the best. The same seed gives the same result, however workers share the simulations.

    rounds: at least 1; steps: of each simulation, at least 1; seed: any integer
    children: candidates of a round, at least 4
    goals: (G, 2) [row, col] tiles of errands, where one that is named twice comes twice as often; None: all
    executor, devices, progress: as `rrt_connect.solve_batch` takes them
    each: called after each round with the best guidance so far, and what it and those before it reached

    -> the best guidance; (rounds,) goals reached in a step by the best so far, on errands that only compare rounds:
    a few per cent too high, since the best is chosen by them

    Raises SettingsError for numbers that are too small, GridMapError where agents or goals have no place, WorkerError.
    """
    instance("grid", grid, GridMap, "a GridMap", GridMapError)
    numbers = ("agents", agents, 1), ("rounds", rounds, 1), ("steps", steps, 1), ("children", children, 4)
    agents, rounds, steps, children = (whole(name, value, least, MOST) for name, value, least in numbers)
    if not (each is None or callable(each)):
        raise SettingsError(f"each is {shown(each)}; allowed: a function of guidance and a list, or None")
    seed, fleet = folded_seed(seed), FleetPlanner(grid, motion, device, settings)
    tiles, errands = _places(grid, agents, goals)
    work = _Work(fleet, tiles, errands, agents, steps)
    alone = executor is None and devices is None
    where = None if alone else (executor, devices_of(devices, fleet.device))
    kinds = [Guidance.plain(grid), suited(grid, agents), *(one_way(grid, against) for against in AGAINST)]
    left = [-(-children // 2**halving) for halving in range(HALVINGS)]  # children, at each set of errands
    total = len(kinds) * TRIALS + (rounds - 1) * (sum(left) + TRIALS)
    trials, rng = [(seed, 0, trial) for trial in range(TRIALS)], np.random.default_rng((seed, 1))
    tell = each or (lambda *_: None)
    with told("simulations", total, progress) as add:
        done, waited = _simulate(work, [(kind, trial) for kind in kinds for trial in trials], where, add)
        done, waited = done.reshape(-1, TRIALS).mean(axis=1), waited.reshape(-1, TRIALS, *grid.shape).mean(axis=1)
        first = int(done.argmax())
        best, reached, crowds = kinds[first], [float(done[first])], waited[first]
        parent = _Candidate(np.log(best.moves / best.unit), float(np.log(best.turn / best.unit)))
        runs = _runs(grid.costs > 0), _runs(grid.costs.T > 0).T
        tell(best, list(reached))
        for number in range(1, rounds):
            noise = NOISE[0] * (NOISE[1] / NOISE[0]) ** ((number - 1) / max(1, rounds - 2))
            family = [parent.child(runs, noise, crowds, rng) for _ in range(children)]
            score, here = np.zeros(children), np.arange(children)
            for halving, count in enumerate(left):
                here = here[np.argsort(-score[here], kind="stable")[:count]]
                jobs = [(family[child].guidance(), (seed, 1 + number, halving)) for child in here]
                done, waited = _simulate(work, jobs, where, add)
                score[here] += done
            moves, turns = zip(*(family[child] for child in here))
            parent, crowds = _Candidate(np.mean(moves, axis=0), float(np.mean(turns))), waited.mean(axis=0)
            done, _ = _simulate(work, [(parent.guidance(), trial) for trial in trials], where, add)
            if done.mean() > reached[-1]:
                best = parent.guidance()
            reached.append(max(reached[-1], float(done.mean())))
            tell(best, list(reached))
    return best, reached


class _Candidate(NamedTuple):
    """moves: (rows, cols, 4) logarithms of what moves cost, turn: of a quarter turn; 0 is an ordinary move"""

    moves: np.ndarray
    turn: float

    def child(self, runs, noise, crowds, rng):
        """runs: (rows, cols) numbers of straight runs in rows, and in columns, whose tiles have noise in common

        crowds: (rows, cols) which part of the time somebody waits on a tile"""
        rows, cols = self.moves.shape[:2]
        moves, side = self.moves.copy(), int(rng.choice(SQUARES))
        for run, onward, back in zip(runs, (EAST, SOUTH), (WEST, NORTH)):
            lead = noise * rng.standard_normal(run.max() + 1)[run]
            moves[..., onward] -= lead
            moves[..., back] += lead
        weight = 0.5 * noise * rng.standard_normal((-(-rows // side), -(-cols // side)))
        weight = weight.repeat(side, 0).repeat(side, 1)[:rows, :cols]
        dearer = max(0.0, noise * rng.standard_normal()) * np.log1p(CROWDED * crowds)
        moves += (weight + dearer)[..., None]
        return _Candidate(np.minimum(moves, np.log(STRICTEST)), self.turn + 0.5 * noise * rng.standard_normal())

    def guidance(self):
        turn = int(np.clip(np.rint(UNIT * np.exp(self.turn)), 1, UNIT))
        moves = np.rint(UNIT * np.exp(self.moves))
        return Guidance(np.clip(moves, 1, MOST_DIFFERENCE - 4 * turn).astype(np.uint8), UNIT, turn)


def _runs(free):
    """(rows, cols) bool -> (rows, cols) int, numbers of straight runs of free tiles in rows; 0: blocked"""
    begins = free & ~np.pad(free, ((0, 0), (1, 0)))[:, :-1]
    return np.where(free, begins.cumsum().reshape(free.shape), 0)


class _Work(NamedTuple):
    """What all simulations need. tiles: (T, 2) where agents begin; goals: (G, 2) where errands are"""

    fleet: FleetPlanner
    tiles: np.ndarray
    goals: np.ndarray
    agents: int
    steps: int


def _places(grid, agents, goals):
    """-> (T, 2) tiles of the map's largest part, (G, 2) the goals, checked"""
    part = largest_component(grid)
    tiles = np.argwhere(part)
    if agents > len(tiles):
        raise GridMapError(f"agents is {agents}; allowed: at most {len(tiles)}, the tiles of the map's largest part")
    if goals is None:
        return tiles, tiles
    goals = checked_tiles("goals", goals)
    right = ((goals >= 0) & (goals < grid.shape)).all(axis=1)
    right[right] = part[tuple(goals[right].T)]
    if not len(goals) or not right.all():
        which = f"[{int(right.argmin())}] is {goals[right.argmin()].tolist()}" if len(goals) else " is empty"
        raise GridMapError(f"goals{which}; allowed: tiles of the map's largest part")
    return tiles, goals


def _simulate(work, jobs, where, add):
    """[(guidance, seed)] -> (jobs,) goals reached in a step, (jobs, rows, cols) part of the time that somebody waited

    where: (executor, devices); None: in this thread
    """
    if where is None:
        answers = (_answer(work, job, work.fleet.device) for job in jobs)
    else:
        split = Split("simulations", len(jobs), lambda first, _: jobs[first], _answer, work, size=lambda _: 1)
        answers = spread(split, *where, lambda *_: None)
    results = []
    for answer in answers:
        results.append(answer)
        add(1)
    done, waited = zip(*results)
    return np.array(done), np.array(waited)


def _answer(work, job, device):
    guidance, seed = job
    fleet = FleetPlanner(work.fleet.grid, work.fleet.motion.name, device, work.fleet.settings, guidance)
    rng, agents = np.random.default_rng(seed), work.agents
    fleet.start(rng.permutation(work.tiles)[:agents], rng.integers(4, size=agents))
    goals, done = work.goals[rng.integers(len(work.goals), size=agents)], 0
    waited = np.zeros(fleet.grid.shape, np.float32)
    for _ in range(work.steps):
        before, faces = fleet.positions, fleet.headings
        fleet.step(goals)
        now = fleet.positions
        stood = (before == now).all(axis=1) & (faces == fleet.headings)
        np.add.at(waited, tuple(now[stood].T), 1 / work.steps)
        there = (now == goals).all(axis=1)
        done += int(there.sum())
        goals[there] = work.goals[rng.integers(len(work.goals), size=there.sum())]
    return done / work.steps, waited
