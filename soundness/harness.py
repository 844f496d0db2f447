"""What every attack shares: what a run knows, and what an attack counts."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from gpu_planners.errors import GpuPlannersError

ACCURACY = 1e-4  # m: what the package states, and refuses to do worse
NEAR = 2e-6  # m: at ordinary scale (a few metres) nothing that overlaps by more may be called free
KEPT = 20  # cases of an attack whose first failure is kept with its details


class Skipped(Exception):
    """This case cannot be made here; the text says why."""


@dataclass(frozen=True)
class Attack:
    """name: for --only; title: of the table; case(run, rng, number, tally): one case, all of it drawn from rng."""

    name: str
    title: str
    case: object


@dataclass
class Tally:
    """What one attack has counted.

    cases: scenes;  checks: verdicts compared;  refused: those of free space that the package refused
    skipped: {why: cases that could not be made};  errors: {class: requests that it refused by an error}
    widest: {robot: widest gap refused, metres};  deepest: deepest overlap called free, metres, wrong or not
    apart: verdicts that differ between devices, within the accuracy;  contradicted: overlaps of coal's that its
        triangles deny one by one
    rest: {who said stop: seconds until a robot rested, of each case}
    """

    name: str
    seed: int
    device: str = "cpu"
    number: int = 0
    cases: int = 0
    checks: int = 0
    wrong: int = 0
    refused: int = 0
    apart: int = 0
    contradicted: int = 0
    seconds: float = 0.0
    deepest: float = 0.0
    skipped: Counter = field(default_factory=Counter)
    errors: Counter = field(default_factory=Counter)
    rest: dict = field(default_factory=dict)
    widest: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)

    def fail(self, text):
        self.wrong += 1
        if len(self.failures) < KEPT and self.number not in (failure["case"] for failure in self.failures):
            self.failures.append({"case": self.number, "reproduce": self.reproduction, "what": text})

    @property
    def reproduction(self):
        device = "" if self.device == "cpu" else f" --device {self.device}"
        return f"python -m soundness --only {self.name} --seed {self.seed} --case {self.number}{device}"

    def verdicts(self, robot, free, gaps, what, allowed=NEAR, widest=None, grey=ACCURACY):
        """Compare verdicts with the true gaps.

        free: {device: (N,) bool};  gaps: (N,) signed, metres;  what: function i -> text;  allowed: overlap that may
            be missed
        widest: (N,) bool, where a refusal counts for the widest gap refused; default everywhere
        grey: so near to contact devices may differ
        """
        gaps = np.asarray(gaps)
        for device, verdict in free.items():
            self.checks += len(gaps)
            wrong = np.flatnonzero(verdict & (gaps < -allowed))
            for i in wrong:
                self.fail(f"{device} calls {robot} free at an overlap of {-1e6 * gaps[i]:.3g} um: {what(i)}")
            self.deepest = max(self.deepest, -gaps[verdict].min(initial=0.0))
            refused = ~verdict & (gaps > 0) & (True if widest is None else widest)
            self.refused += int(refused.sum())
            if refused.any():
                self.widest[robot] = max(self.widest.get(robot, 0.0), float(gaps[refused].max()))
        self.compare(free, lambda i: abs(gaps[i]) <= grey, lambda i: f"{robot}, gap {1e6 * gaps[i]:.3g} um: {what(i)}")

    def compare(self, answers, excused, what):
        """Every device must answer as the first one does, except where `excused(i)`."""
        first, *others = answers.items()
        for device, answer in others:
            for i in np.flatnonzero(np.asarray(answer) != np.asarray(first[1])):
                if excused(i):
                    self.apart += 1
                else:
                    self.fail(f"{first[0]} says {first[1][i]}, {device} {answer[i]}: {what(i)}")

    def check(self, holds, text):
        self.checks += 1
        if not holds:
            self.fail(text)

    def rested(self, who, seconds):
        self.rest.setdefault(who, []).append(seconds)

    def error(self, error):
        """The package refused a request by an error of its own: no wrong answer."""
        self.errors[type(error).__name__] += 1

    def as_dict(self):
        return {
            "cases": self.cases,
            "checks": self.checks,
            "wrong": self.wrong,
            "refused": self.refused,
            "apart_within_accuracy": self.apart,
            "contradicted": self.contradicted,
            "deepest_overlap_free_um": 1e6 * self.deepest,
            "widest_gap_refused_um": {robot: 1e6 * gap for robot, gap in sorted(self.widest.items())},
            "rest_s": {who: [min(s), float(np.median(s)), max(s)] for who, s in self.rest.items()},
            "skipped": dict(self.skipped),
            "errors": dict(self.errors),
            "seconds": round(self.seconds, 1),
            "failures": self.failures,
        }


class Run:
    """devices: names for CollisionChecker; robots: names that may be attacked, None for all; folder: of the robots."""

    def __init__(self, devices, robots=None, folder=None):
        self.devices, self._folder = devices, folder
        self.only = robots
        self._rigs = {}

    @cached_property
    def folder(self):
        """Where the real robots lie; where they are not installed, a folder that has none of them."""
        from .robots import robots_folder

        try:
            return robots_folder(self._folder)
        except FileNotFoundError:
            return Path("example-robot-data", "robots")

    @cached_property
    def names(self):
        from .robots import NAMES

        if unknown := set(self.only or ()) - set(NAMES):
            raise SystemExit(f"no robot is named {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
        return NAMES

    def rig(self, number):
        """The Rig whose turn it is in case `number`, kept from then on; raises Skipped where it is not to be had."""
        return self.rig_named(self.names[number % len(self.names)])

    def rig_named(self, name, shift=None):
        """The Rig of a name of ROBOTS, or of a generated robot; shift: where its base is, metres."""
        from .robots import ROBOTS, Rig

        if self.only and name in ROBOTS and name not in self.only:
            raise Skipped("")
        key = name, shift
        if key not in self._rigs:
            urdf = ROBOTS[name].urdf if name in ROBOTS else None
            if urdf and not (Path(self.folder) / urdf).is_file():
                self._rigs[key] = f"{name} is not in the folder of robots (pip install example-robot-data)"
            else:
                try:
                    self._rigs[key] = Rig(name, self.folder, self.devices, shift)
                except GpuPlannersError as error:
                    self._rigs[key] = f"{name}: {error}"
        if isinstance(self._rigs[key], str):
            raise Skipped(self._rigs[key])
        return self._rigs[key]


def generator(seed, attack, number):
    """The random numbers of one case: nothing else decides what it is."""
    return np.random.default_rng([seed, number, *attack.encode()])


def numbers(array):
    """An array as text that can be pasted into Python, every digit kept."""
    return np.asarray(array).tolist()
