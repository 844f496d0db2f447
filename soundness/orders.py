"""A fleet that runs, whose reports and orders come late, get lost, come twice, lie: no two robots come nearer than they
may. The robots, the networks and the oracle share no code with the node; distances are those of bodies, in between
tiles too."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from gpu_planners.fleet import Settings
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import warehouse_map

from .harness import Attack

TICK_S, REPORT_S, STEP_S = 0.1, 0.2, 0.5
SECONDS = 180.0  # of a case
DOWN_S = 3.0  # a node that restarts
ROBOTS = {1: 24, 2: 12}  # by size
MAPS = {1: warehouse_map(12, 24, apron=3), 2: GridMap(np.ones((16, 24), np.uint8), 4)}
STALLS = {"late": 0.1, "broken": 10.0}  # besides, in every second case


@dataclass(frozen=True)
class Faults:
    """What goes wrong, as shares of reports, orders or moves unless it says otherwise."""

    late: float = 0.0  # moves that take three times as long
    broken: float = 0.0  # breakdowns of a robot in an hour; every second one is silent
    lost: float = 0.0  # reports and orders
    delay: float = 0.0  # seconds that reports and orders take at most, without keeping their order
    doubled: float = 0.0  # reports and orders that come again up to half a second later
    stale: float = 0.0  # reports of up to five seconds ago
    noise: float = 0.0  # standard deviation of reported places, tiles
    outliers: float = 0.0  # reports from anywhere
    ghost: float = 0.0  # seconds in a minute that something else reports a robot where it was
    restarts: float = 0.0  # of the node, a minute; one robot is dead and silent from the beginning
    skew: float = 0.0  # seconds that clocks of robots differ; they are set anew now and then
    stamped: bool = True
    turned: bool = True  # do reports tell the heading?
    starts: bool = True  # do robots mind where an order begins?


# fmt: off
KINDS = {
    "late": Faults(late=0.1, broken=6.0), "lost": Faults(lost=0.2), "delayed": Faults(delay=0.4),
    "doubled": Faults(doubled=0.02), "doubled, unstamped": Faults(doubled=0.02, stamped=False),
    "stale": Faults(stale=0.02), "noisy": Faults(noise=0.2), "outliers": Faults(outliers=0.01),
    "outliers, unstamped": Faults(outliers=0.01, stamped=False), "two publishers": Faults(ghost=10.0),
    "restarts": Faults(restarts=1.0, late=0.1), "clocks": Faults(skew=30.0, doubled=0.02),
    "no heading": Faults(turned=False, lost=0.2),
    "no heading, numbers alone": Faults(turned=False, starts=False, lost=0.2),
    "numbers alone": Faults(starts=False, lost=0.1, late=0.1),
    "together": Faults(0.05, 4.0, 0.05, 0.3, 0.01, 0.01, 0.05, 0.002, 2.0, 0.5, 5.0),
    "together, unstamped": Faults(0.05, 4.0, 0.05, 0.1, 0.01, 0.0, 0.05, 0.002, 0.0, 0.5, 0.0, stamped=False),
}
# fmt: on


class Network:
    """Messages that arrive late, twice, or never, unless one is too important to be lost. put: (now, message); take:
    those that have arrived by now"""

    def __init__(self, rng, faults):
        self._rng, self._faults, self._under_way, self._count = rng, faults, [], 0

    def put(self, now, message, arrives=False):
        if not arrives and self._rng.random() < self._faults.lost:
            return
        self._count += 1
        self._under_way.append((now + self._rng.uniform(0, self._faults.delay), self._count, message))
        if self._rng.random() < self._faults.doubled:
            self._under_way.append((now + self._rng.uniform(0, 0.5), self._count, message))

    def take(self, now):
        arrived = sorted((each for each in self._under_way if each[0] <= now), key=lambda each: each[:2])
        self._under_way = [each for each in self._under_way if each[0] > now]
        return [message for *_, message in arrived]


class Robot:
    """A robot that obeys as gpu_planners_msgs/AgentActions says.

    tile, heading: at the end of its last action; place: (2,) [row, col], also in between
    """

    def __init__(self, rng, tile, faults, motion):
        self.rng, self.faults, self.turning = rng, faults, motion == "turning"
        self.tile, self.heading, self.place = tuple(tile), 0, np.array(tile, float)
        self.number, self.orders, self.action, self.share, self.pace = 0, [], None, 0.0, 1.0
        self.stands_until = self.silent_until = 0.0
        self.goal, self.tells, self.clock, self.past = None, True, rng.uniform(0, faults.skew), []
        self.step = 0

    def hear(self, message, now):
        step, first, *orders = message
        if now < self.silent_until:
            return
        if step < self.step - 100:  # the node began anew, and knows nothing
            self.number = 0
        self.step = max(step, self.step) if step >= self.step - 100 else step
        begin, self.orders = first, []
        for number, tile, heading in orders:
            if number > self.number:
                self.orders.append((number, begin, (tile, heading)))
            begin = tile, heading

    def move(self, now, dt):
        if self.faults.broken and self.rng.random() < self.faults.broken * dt / 3600:
            self.stands_until = now + 30.0
            if self.rng.random() < 0.5:
                self.silent_until = self.stands_until
        if now < self.stands_until:
            return
        if self.action is None and self.orders:
            number, begin, end = self.orders[0]
            here = (self.tile, self.heading if self.turning else 0)
            if self.faults.starts and here != begin:
                return
            self.orders.pop(0)
            if end != here:
                late = self.rng.random() < self.faults.late
                self.action, self.share, self.pace = end, 0.0, 1 / 3 if late else 1.0
            self.number = number
            if self.action and not self.faults.starts and self.turning and end[0] != self.tile:
                # it knows its orders as turns and "ahead": ahead is where it looks
                step = ((0, 1), (1, 0), (0, -1), (-1, 0))[self.heading]
                self.action = (self.tile[0] + step[0], self.tile[1] + step[1]), self.heading
        if self.action is not None:
            self.share += self.pace * dt / STEP_S
            (row, col), heading = self.action
            self.place = np.array(self.tile) + min(self.share, 1.0) * (np.array((row, col)) - self.tile)
            if self.share >= 1 - 1e-9:
                self.tile, self.heading, self.action = (row, col), heading, None

    def report(self, now):
        """-> (place, heading or None, stamp)"""
        turned = self.action[1] if self.action and self.share > 0.5 else self.heading
        clean = self.place.copy(), turned, now + self.clock
        self.past = [*self.past[-24:], clean]
        place, turned, stamp = clean
        if self.rng.random() < self.faults.stale:
            place, turned, stamp = self.past[self.rng.integers(len(self.past))]
        if self.rng.random() < self.faults.outliers:
            place = self.rng.uniform((0, 0), (12, 24))
        place = place + self.rng.normal(0, self.faults.noise, 2) if self.faults.noise else place
        return place, turned if self.faults.turned else None, stamp if self.faults.stamped else 0.0


class World:
    """Robots, two networks and a node's fleet, which is told and tells over them."""

    def __init__(self, seed, faults, size=1, motion="turning", folder=None, **parameters):
        from gpu_planners.nodes.fleet.parameters import FleetParameters

        self.rng, self.faults, self.size = np.random.default_rng(seed), faults, size
        fleet = Settings(size=size, following=False, neighbourhood_search=False)
        kept = {"state_file": str(Path(folder) / "fleet.json")} if folder else {}
        self.values = FleetParameters(device="cpu", step_s=STEP_S, motion=motion, fleet=fleet, **kept, **parameters)
        self.grid = MAPS[size]
        self.tiles = self._anchors()
        starts = []
        for tile in self.rng.permutation(self.tiles).tolist():
            if len(starts) < ROBOTS[size] and all(max(abs(a - b) for a, b in zip(tile, t)) >= size for t in starts):
                starts.append(tile)
        self.robots = [Robot(self.rng, tile, faults, motion) for tile in starts]
        if faults.restarts:
            self.robots[0].stands_until = self.robots[0].silent_until = np.inf
        self.up, self.down = Network(self.rng, faults), Network(self.rng, faults)
        self.fleet, self.down_until, self.errands, self.now = None, 0.0, 0, 0.0
        self.nearest, self.wrong = np.inf, []
        self.ghosts = {}

    def _anchors(self):
        free, size = ~self.grid.blocked, self.size
        fits = np.ones((free.shape[0] - size + 1, free.shape[1] - size + 1), bool)
        for row in range(size):
            for col in range(size):
                fits &= free[row : row + fits.shape[0], col : col + fits.shape[1]]
        return np.argwhere(fits)

    @property
    def least(self):
        """Tiles that the centres of two robots must be apart: the diameter of their bodies."""
        return self.size - 2 * self.values.clearance

    def tick(self):
        self.now += TICK_S
        for robot in self.robots:
            robot.move(self.now, TICK_S)
            if robot.goal is not None and robot.action is None and robot.tile == robot.goal:
                self.errands += 1
                robot.goal = None
            if robot.goal is None:
                robot.goal, robot.tells = tuple(self.tiles[self.rng.integers(len(self.tiles))].tolist()), True
            if self.faults.skew and self.rng.random() < 0.1 * TICK_S / 60:
                robot.clock = self.rng.uniform(0, self.faults.skew)
        places = np.array([robot.place for robot in self.robots])
        pair = cKDTree(places).query(places, 2)[0][:, 1]
        self.nearest = min(self.nearest, pair.min())
        if pair.min() < self.least - 1e-6:
            a, b = sorted(np.argsort(pair)[:2])
            self.wrong.append(
                f"at {self.now:.1f} s robots {a} and {b} are {pair.min():.2f} tiles apart: {places[[a, b]].tolist()}"
            )
        if self.faults.restarts and self.fleet is not None and self.rng.random() < self.faults.restarts * TICK_S / 60:
            self.fleet, self.down_until = None, self.now + DOWN_S
        if self.fleet is None and self.now >= self.down_until:
            self._start()
        self._talk()

    def _start(self):
        from gpu_planners.fleet.execution.running import RunningFleet

        self.fleet = RunningFleet(self.values)
        self.fleet.take_map(self.grid)
        for robot in self.robots:
            robot.tells = True

    def _talk(self):
        if round(self.now / TICK_S) % round(REPORT_S / TICK_S) == 0:
            self._report()
        arrived = self.up.take(self.now)
        if self.fleet is None:
            return
        for id, place, turned, stamp in arrived:  # one by one, as they come
            self.fleet.take_states(*self._told([id], [place], [turned]), np.array([self.now]), {}, np.array([stamp]))
        new = [(str(k), robot) for k, robot in enumerate(self.robots) if robot.tells]
        if new:
            goals = np.array([robot.goal for _, robot in new])[:, ::-1] + self.size / 2
            self.fleet.take_goals([id for id, _ in new], goals, {})
            for _, robot in new:
                robot.tells = False
        step = self.fleet.step(self.now) if self.fleet.due(self.now) else self.fleet.news(self.now)
        if step is not None:
            self._send(step)
        for k, message in self.down.take(self.now):
            self.robots[k].hear(message, self.now)

    def _told(self, ids, places, turned):
        yaws = [np.nan if heading is None else heading * np.pi / 2 for heading in turned]
        return ids, np.array(places)[:, ::-1] + self.size / 2, np.array(yaws)

    def _report(self):
        for k, robot in enumerate(self.robots):
            if self.now < robot.silent_until and self.now > 2.0:
                continue
            place, turned, stamp = robot.report(self.now)
            # nobody can keep away from a robot that has never told where it is
            self.up.put(self.now, (str(k), place, turned, stamp), arrives=not robot.past[1:])
            if self.faults.ghost and self.rng.random() < self.faults.ghost / 60 * REPORT_S / 5:
                self.ghosts[k] = self.now + 5.0, (place, turned)
            if self.now < self.ghosts.get(k, (0.0,))[0]:
                self.up.put(self.now, (str(k), *self.ghosts[k][1], stamp + 0.01 if stamp else 0.0))

    def _send(self, step):
        ahead = np.r_[0, np.cumsum(step.ahead)]
        for k, id in enumerate(step.ids):
            more = slice(ahead[k], ahead[k + 1])
            start = tuple(step.tiles_before[k].tolist()), int(step.headings_before[k])
            ends = [(step.tiles[k], step.headings[k]), *zip(step.tiles_ahead[more], step.headings_ahead[more])]
            orders, before = [], start[0]
            for number, (tile, heading) in enumerate(ends, int(step.numbers[k])):
                tile = tuple(tile.tolist())
                if sum(abs(a - b) for a, b in zip(tile, before)) > 1:
                    self.wrong.append(f"at {self.now:.1f} s robot {id} is told to go from {before} to {tile}")
                orders.append((number, tile, int(heading)))
                before = tile
            self.down.put(self.now, (int(id), (step.number, start, *orders)))

    def run(self, seconds):
        while self.now < seconds and not self.wrong:
            self.tick()
        return self


def case(run, rng, number, tally):
    names = [*KINDS]
    kind = names[number % len(names)]
    size, motion = (1, 1, 2)[rng.integers(3)], ("turning", "turning", "four")[rng.integers(3)]
    motion = motion if KINDS[kind].turned else "turning"
    ahead, seed = int(rng.integers(4)), int(rng.integers(2**31))
    faults, stalls = KINDS[kind], rng.random() < 0.5
    faults = replace(faults, **STALLS) if stalls else faults
    with tempfile.TemporaryDirectory() as folder:
        world = World(seed, faults, size, motion, folder if faults.restarts else None, steps_ahead=ahead)
        world.run(SECONDS)
    what = f"{kind}{', stalls' * stalls}, seed {seed}, size {size}, {motion}, steps_ahead {ahead}"
    tally.check(not world.wrong, f"{what}: {world.wrong[:1]}")
    tally.check(world.errands > 0, f"{what}: no errand was done")


ATTACK = Attack("orders", "fleets whose reports and orders come late, twice, wrong or not at all", case)
