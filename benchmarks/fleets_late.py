"""Fleets of robots that are late: a node's fleet and simulated robots that delay, break down and do not hear all."""

import numpy as np
from scipy.spatial import cKDTree

from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.fleet.execution.rules import Rules
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.fleet.fields.lanes import footprint_free
from gpu_planners.grid.maps.generated import warehouse_map

from .harness import Benchmark, Row, progress, told

TICK_S = 0.1  # of the simulation
REPORTS = 2  # ticks from one report of a robot to the next
OUT_OF_ORDER_S = 30.0  # how long a robot stands that has broken down
LATE_STEPS = 2  # by how many steps a late move is late
DIAMETER = 0.74  # tiles, of a robot, for which the node's clearance of 0.125 is right
DOWN_S = 3.0  # how long a node takes to start again
UNDERWAY_S = 60.0  # before errands count


class Robots:
    """Robots that do what they are told, but not always at once.

    late: share of moves that take two steps more; lost: share of what is told and reported that gets lost
    broken: breakdowns in an hour of each robot; half of these robots are silent meanwhile
    sizes: sides in tiles that they have in turn
    """

    def __init__(self, grid, count, step_s, late, lost, broken, seed=0, sizes=(1,)):
        self.rng, self.step_s, self.late, self.lost, self.broken = (
            np.random.default_rng(seed),
            step_s,
            late,
            lost,
            broken,
        )
        free = {size: np.argwhere(footprint_free(~grid.blocked, size)) for size in sizes}
        self.sizes = np.resize(sizes, count)
        self.tiles = [free[size] for size in self.sizes.tolist()]  # of each robot, those where it can be
        self.at = self.apart(free) if len(free) > 1 else self.rng.permutation(free[sizes[0]])[:count]
        self.to, self.heading, self.turned = self.at.copy(), np.zeros(count, int), np.zeros(count, int)
        self.began, self.ends = np.full(count, np.inf), np.full(count, np.inf)
        self.number = np.zeros(count, int)  # of the action that is done now, or was last
        self.queue = [[] for _ in range(count)]
        self.silent_until, self.still_until = np.zeros(count), np.zeros(count)
        self.goals = self.drawn(np.arange(count))
        self.new_goals, self.errands, self.overlaps = np.ones(count, bool), 0, 0
        self.moved = np.zeros(count)  # when each did something last

    def apart(self, free):
        """Tiles of robots that do not meet, the largest first. free: {size: tiles where one can be}"""
        at = np.zeros((len(self.sizes), 2), int)
        order = np.argsort(-self.sizes, kind="stable")
        for k, a in enumerate(order):
            before = order[:k]
            for tile in self.rng.permutation(free[self.sizes[a]]):
                off = tile + self.middle(self.sizes[a]) - at[before] - self.middle(self.sizes[before])[:, None]
                if (np.abs(off).max(axis=1, initial=0) >= (self.sizes[a] + self.sizes[before]) / 2).all():
                    at[a] = tile
                    break
            else:
                raise ValueError(f"there is no room for {len(order)} robots of sizes {sorted(free)}")
        return at

    @staticmethod
    def middle(sizes):
        """From the middle of a robot's tile to its own."""
        return 0.5 * ((np.asarray(sizes) - 1) % 2)

    def drawn(self, robots):
        """Goals of robots (K,)."""
        places = [self.tiles[a][self.rng.integers(len(self.tiles[a]))] for a in robots]
        return np.array(places, int).reshape(-1, 2)

    def hear(self, step, now):
        """Take a FleetStep."""
        heard = self.rng.random(len(step.ids)) >= self.lost
        first = np.r_[0, np.cumsum(step.ahead)]
        for k in np.flatnonzero(heard):
            a = int(step.ids[k])
            if now < self.silent_until[a]:
                continue
            more = slice(first[k], first[k + 1])
            told = [(step.tiles[k], step.headings[k]), *zip(step.tiles_ahead[more], step.headings_ahead[more])]
            numbers = range(step.numbers[k], step.numbers[k] + len(told))
            starts = [(step.tiles_before[k], step.headings_before[k]), *told]
            self.queue[a] = [order for order in zip(numbers, starts, told) if order[0] > self.number[a]]

    def restart(self):
        """The node is a new one: forget what the old one told."""
        self.queue = [[] for _ in self.queue]
        self.number[:] = 0
        self.new_goals[:] = True

    def move(self, now):
        """Go on for a tick."""
        if self.broken:
            fails = np.flatnonzero(self.rng.random(len(self.at)) < self.broken * TICK_S / 3600)
            self.still_until[fails] = now + OUT_OF_ORDER_S
            self.silent_until[fails[::2]] = now + OUT_OF_ORDER_S
        stands = now < self.still_until
        self.ends[stands] += TICK_S
        done = np.flatnonzero(self.ends <= now + 1e-9)
        self.at[done], self.heading[done], self.ends[done] = self.to[done], self.turned[done], np.inf
        self.moved[done] = now
        for a in np.flatnonzero(np.isinf(self.ends) & ~stands):
            if self.queue[a]:
                number, (tile, heading), end = self.queue[a][0]
                if (tile != self.at[a]).any() or heading != self.heading[a]:
                    continue  # it has missed something
                self.queue[a].pop(0)
                self.number[a], (self.to[a], self.turned[a]) = number, end
                if (self.to[a] == self.at[a]).all() and self.turned[a] == self.heading[a]:
                    continue
                self.began[a], self.ends[a] = now, now + self.seconds_of(a, now)
        there = np.isinf(self.ends) & (self.at == self.goals).all(axis=1)
        self.errands += int(there.sum())
        self.new_goals |= there
        self.goals[there] = self.drawn(np.flatnonzero(there))
        self.overlaps += self.meetings(now)

    def seconds_of(self, a, now):
        """How long the action takes that a robot begins now."""
        return (1 + LATE_STEPS * (self.rng.random() < self.late)) * self.step_s

    def meetings(self, now):
        """How many pairs meet now."""
        if (self.sizes == 1).all():
            return len(cKDTree(self.places(now)).query_pairs(DIAMETER))
        at = self.places(now) + self.middle(self.sizes)[:, None]
        off = np.abs(at[:, None] - at).max(axis=2)
        return int(np.triu(off < (self.sizes[:, None] + self.sizes) / 2 - (1 - DIAMETER), 1).sum())

    def places(self, now):
        """(N, 2) rows and columns; a late move is done in the end of its time"""
        share = np.where(np.isinf(self.ends), 0.0, np.clip(1 - (self.ends - now) / self.step_s, 0, 1))[:, None]
        return self.at + share * (self.to - self.at)

    def report(self, fleet, now):
        """Tell a RunningFleet where they are, and new goals, of which nothing gets lost."""
        some = np.flatnonzero((now >= self.silent_until) & (self.rng.random(len(self.at)) >= self.lost))
        middle = 0.5 + self.middle(self.sizes)[:, None]
        points = (self.places(now) + middle)[some, ::-1]
        turns = np.where(self.ends - now > self.step_s / 2, self.heading, self.turned)[some]
        fleet.take_states(
            [str(a) for a in some], points, turns * np.pi / 2, np.full(len(some), now), {}, sizes=self.sizes[some]
        )
        new = np.flatnonzero(self.new_goals)
        if len(new):
            fleet.take_goals([str(a) for a in new], (self.goals + middle)[new, ::-1], {})
            self.new_goals[:] = False


def run(
    grid,
    count,
    seconds,
    step_s=0.5,
    late=0.0,
    lost=0.0,
    broken=0.0,
    restarts=(),
    bar=None,
    seed=0,
    sizes=(1,),
    kind=Robots,
    taken=None,
    dynamics=None,
    minutes=None,
    **parameters,
):
    """Let robots work -> (Robots, RunningFleet, errands of a minute once they are under way)

    restarts: seconds at which the node ends, to be there again DOWN_S later; bar: iterator, each step takes one of it
    kind: Robots, or a class of its own; taken: list that gets the seconds that each step was planned in
    dynamics: {id: Dynamics} that the fleet is told; minutes: list that gets the errands of each minute that is over
    parameters: of Rules
    """
    values = Rules(**({"device": "cpu", "step_s": step_s} | parameters))
    robots, fleet, before = kind(grid, count, step_s, late, lost, broken, seed, sizes), None, 0
    for tick in range(round(seconds / TICK_S)):
        now = tick * TICK_S
        robots.move(now)
        if now < UNDERWAY_S:
            before = robots.errands
        if minutes is not None and (tick + 1) % round(60 / TICK_S) == 0:
            minutes.append(robots.errands - sum(minutes))
        if any(restart <= now < restart + DOWN_S for restart in restarts):
            fleet = None
            continue
        if fleet is None:
            fleet = RunningFleet(values, simulated=True)
            fleet.take_map(grid)
            fleet.take_dynamics(dynamics or {})
            robots.restart()
        if tick % REPORTS == 0:
            robots.report(fleet, now)
        due = fleet.due(now)
        step = fleet.step(now) if due else fleet.news(now)
        if step is not None:
            robots.hear(step, now)
        if due and taken is not None:
            taken.append(fleet.step_times[-1])
        if due and bar is not None:
            next(bar, None)
    return robots, fleet, (robots.errands - before) * 60 / max(seconds - UNDERWAY_S, 1e-9)


def ideal(grid, count, seconds, step_s=0.5, seed=0, minutes=None):
    """Errands of a minute of agents that are always in time, and known at once to be there. minutes: as of `run`"""
    rng = np.random.default_rng(seed)
    tiles = np.argwhere(~grid.blocked)
    fleet, goals, done, before = FleetPlanner(grid, "turning", "cpu", Settings(following=False)), None, 0, 0
    fleet.start(rng.permutation(tiles)[:count])
    goals = tiles[rng.integers(len(tiles), size=count)]
    for step in range(round(seconds / step_s)):
        fleet.step(goals)
        there = (fleet.positions == goals).all(axis=1)
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        done += int(there.sum())
        if step < UNDERWAY_S / step_s:
            before = done
        if minutes is not None and (step + 1) % round(60 / step_s) == 0:
            minutes.append(done - sum(minutes))
    return (done - before) * 60 / (seconds - UNDERWAY_S)


ALL_FAULTS = "the same, each breaks down twice an hour", {"late": 0.05, "lost": 0.05, "broken": 2.0}
KINDS = (
    ("in time", {}),
    ("5 % late", {"late": 0.05}),
    ("5 % lost", {"lost": 0.05}),
    ("5 % late, 5 % lost", {"late": 0.05, "lost": 0.05}),
    ALL_FAULTS,
    ("5 % late, 5 % lost, the node begins anew", {"late": 0.05, "lost": 0.05, "restarts": (60.0, 120.0, 600.0)}),
)


def late_robots(context):
    """Errands of robots that are late, and who met whom."""
    found = []
    for rows, cols, count in ((38, 70, 200), (80, 140, 1000)):
        grid = warehouse_map(rows, cols, apron=6)
        for kind, faults in KINDS:
            seconds = 240 if context.quick else 3600 if context.full else 1800
            bar = iter(progress(range(round(seconds / 0.5)), f"{count} robots, {kind}"))
            robots, fleet, errands = run(grid, count, seconds, bar=bar, **faults)
            best = ideal(grid, count, seconds)
            figures = {
                "errands": errands,
                "of_ideal": errands / best,
                "overlaps": robots.overlaps,
                "longest_s": float(seconds - robots.moved.min()),
                "step_ms": 1e3 * float(np.median(fleet.step_times)),
            }
            found.append(told(Row(f"{count} robots, {rows}x{cols}", kind, figures)))
    return found


def hour(context):
    """Errands a minute of 1,000 robots with all faults, in tens of minutes, beside those of the ideal."""
    grid, count, faults = warehouse_map(80, 140, apron=6), 1000, ALL_FAULTS[1]
    seconds = 240 if context.quick else 3600
    bar, minutes, best = iter(progress(range(round(seconds / 0.5)), "the hour")), [], []
    robots, _, errands = run(grid, count, seconds, bar=bar, minutes=minutes, **faults)
    of_ideal = ideal(grid, count, seconds, minutes=best)
    tens = [
        (f"minutes {k + 1} to {k + len(best[k : k + 10])}", np.mean(minutes[k : k + 10]), np.mean(best[k : k + 10]), {})
        for k in range(0, len(best), 10)
    ]
    standing = {"overlaps": robots.overlaps, "longest_s": float(seconds - robots.moved.min())}
    return [
        told(Row(f"{count} robots", when, {"errands": ours, "ideal": most, "of_ideal": ours / most} | more))
        for when, ours, most, more in [*tens, ("from minute 2 on", errands, of_ideal, standing)]
    ]


BENCHMARKS = (
    Benchmark(
        "fleets_late",
        "Fleets of robots that are late",
        "A warehouse, steps of 0.5 s, the node's fleet with its defaults and simulated robots, which report five times "
        "a second. A late move takes three steps; of what is told and reported a share is lost; a robot that breaks "
        "down stands for 30 s, every other one silently; the node is away for 3 s. Ideal: agents that are always in "
        "time and known at once to be. Time stands still while the fleet plans, so a busy machine changes nothing. "
        "Overlaps: pairs of robots of 0.74 tiles that meet, counted ten times a second. "
        "Longest: since the robot that has stood longest at the end did something.",
        {"errands": "ratio", "of_ideal": "share", "overlaps": "count", "longest_s": "ratio", "step_ms": "ms"},
        late_robots,
    ),
    Benchmark(
        "fleet_hour",
        "An hour of 1,000 robots with all faults",
        "The same on 80x140 tiles, errands a minute.",
        {"errands": "ratio", "ideal": "ratio", "of_ideal": "share", "overlaps": "count", "longest_s": "ratio"},
        hour,
    ),
)
