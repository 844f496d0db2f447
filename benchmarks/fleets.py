"""Fleets for life: errands in the published instances, and the time of a step by size."""

from dataclasses import replace

import numpy as np

from gpu_planners.fleet import Settings, conflicts
from gpu_planners.grid import FleetPlanner

from .fleet_instances import NAMES, published, scattered, simulate
from .harness import Benchmark, Row, progress, told, with_data

WAYS = (  # name, guidance, seconds a step
    ("default", "auto", 0.05),
    ("bare", "auto", 0.0),
    ("bare, plain", "plain", 0.0),
)
EPIBT = {
    "MR23-I-07": "EPIBT, bare 2913 errands at 1.5 ms, with search and guidance 5301 at 50 ms a step, one core of 2"
}
OTHERS = (  # settings beside the default ones
    {"guidance": "plain"},
    {"guidance": "lanes"},
    {"horizon": 3},
    {"horizon": 4},
    {"horizon": 5},
    {"avoid_crowds": False},
)
TEAMS = (100, 200, 400, 800)  # on the map of MR23-I-07
QUICK = 100  # steps of a quick run
SHORT = 300  # steps, at most, unless a run is full
MEMORY = 32 << 30
CHECKED = 20_000_000  # positions that the validator is given at most


def lifelong(context):
    """Errands of every instance, device and way."""

    def rows():
        found = []
        for name in context.instances or (NAMES[:3] if context.quick else NAMES):
            instance = published(name, context.data)
            quoted = f"best known {instance.best_known} in {instance.steps} steps; {EPIBT.get(name, '')}".rstrip("; ")
            for device, missing in context.asked_for():
                for way, guidance, budget in WAYS:
                    subject = f"{way}, {device}"
                    if missing:
                        found.append(Row(name, subject, note=missing))
                        continue
                    steps = instance.steps if context.full else min(instance.steps, QUICK if context.quick else SHORT)
                    found.append(told(_lived(instance, device, subject, guidance, budget, steps, quoted)))
        return found

    return with_data("all", rows)


def _lived(instance, device, subject, guidance, budget, steps, quoted):
    settings = Settings(guidance=guidance, neighbourhood_search=budget > 0, memory_limit_bytes=MEMORY)
    fleet, taken = FleetPlanner(instance.grid, "turning", device, settings), []
    warm = FleetPlanner(instance.grid, "turning", device, settings)
    warm.start(instance.starts[:10])
    warm.step(instance.task(np.zeros(len(instance.starts), np.int64))[:10], 0.01 if budget else 0.0)
    bar = iter(progress(range(steps), f"{instance.name}, {subject}"))
    done, walked = simulate(fleet, instance, steps, budget, lambda step, s: (taken.append(s), next(bar, None)))
    every = walked[: 1 + CHECKED // len(instance.starts)]
    figures = {
        "agents": len(instance.starts),
        "steps": steps,
        "errands": int(done.sum()),
        "of_best": float(done.sum() / steps / (instance.best_known / instance.steps)),
        "first_s": taken[0],
        "step_ms": 1e3 * float(np.median(taken[1:])),
        "step_p95_ms": 1e3 * float(np.percentile(taken[1:], 95)),
        "conflicts": len(conflicts(every, ~instance.free)),
        "stuck": len(fleet.stuck),
    }
    return Row(instance.name, subject, figures, quoted=quoted)


def defaults(context):
    """Errands with all settings at their defaults, and with one of them set, 50 ms a step."""

    def rows():
        crowded = published("MR23-I-07", context.data)
        tiles = np.random.default_rng(0).permutation(np.argwhere(crowded.free))
        instances = [replace(crowded, name=f"its map, {n} agents", starts=tiles[:n]) for n in TEAMS]
        instances = [crowded, *instances, *(published(name, context.data) for name in ("TR23-Paris", "MR23-I-01"))]
        steps = QUICK if context.quick else SHORT
        return [row for instance in instances for device in context.devices for row in _beside(instance, device, steps)]

    return with_data("all", rows)


def _beside(instance, device, steps):
    """Rows of an instance: the default first, and each of OTHERS."""
    default = 0
    for other in ({}, *OTHERS):
        fleet = FleetPlanner(instance.grid, "turning", device, Settings(memory_limit_bytes=MEMORY, **other))
        simulate(fleet, instance, 2, 0.05)  # compiled, and fields planned
        subject = ", ".join([*(f"{name}={value}" for name, value in other.items()), device])
        bar = iter(progress(range(steps), f"{instance.name}, {subject}"))
        done, _ = simulate(fleet, instance, steps, 0.05, lambda *_, bar=bar: next(bar, None))
        errands = int(done.sum())
        default = default or errands
        figures = {"agents": len(instance.starts), "errands": errands, "of_default": errands / default}
        yield told(Row(instance.name, subject if other else f"default, {device}", figures))


def sizes(context):
    """The time of a step of the bare stepper by the number of agents."""
    cases = ((64, 64, 500), (128, 128, 2000), (256, 256, 10_000), (512, 512, 40_000), (1024, 1024, 100_000))
    found = []
    for rows, cols, agents in cases[:3] if context.quick else cases:
        instance = scattered(rows, cols, agents, min(agents, 4096))
        for device, missing in context.asked_for():
            for motion in ("turning", "four"):
                subject = f"{motion}, {device}"
                if missing:
                    found.append(Row(instance.name, subject, note=missing))
                    continue
                settings = Settings(guidance="lanes", neighbourhood_search=False, memory_limit_bytes=MEMORY)
                fleet, taken = FleetPlanner(instance.grid, motion, device, settings), []
                steps = 20 if context.quick else 60
                done, walked = simulate(fleet, instance, steps, 0.0, lambda _, s, taken=taken: taken.append(s))
                figures = {
                    "fields_MB": fleet.memory_bytes / 1e6,
                    "first_s": taken[0],
                    "step_ms": 1e3 * float(np.median(taken[2:])),
                    "step_p95_ms": 1e3 * float(np.percentile(taken[2:], 95)),
                    "errands": int(done.sum()),
                    "conflicts": len(conflicts(walked[-6:], ~instance.free)),
                }
                found.append(told(Row(instance.name, subject, figures)))
    return found


BENCHMARKS = (
    Benchmark(
        "fleets",
        "Fleets for life",
        "Errands in the instances of the League of Robot Runners 2023, by agents that turn. Without --full only the "
        "first 300 steps are run, and the first errands take longest. The first step plans all fields. Conflicts are "
        "those that a validator finds that shares no code.",
        {
            "agents": "count",
            "steps": "count",
            "errands": "count",
            "of_best": "share",
            "first_s": "ratio",
            "step_ms": "ms",
            "step_p95_ms": "ms",
            "conflicts": "count",
            "stuck": "count",
        },
        lifelong,
    ),
    Benchmark(
        "fleet_settings",
        "Settings of a fleet beside the default",
        "Errands of agents that turn in the first 300 steps, 50 ms a step, one setting set, all others by default.",
        {"agents": "count", "errands": "count", "of_default": "share"},
        defaults,
    ),
    Benchmark(
        "fleet_sizes",
        "A step of a fleet by its size",
        "Maps with 10 % random obstacles, goals among at most 4,096 tiles, lanes, no search. Wall time of `step`, with "
        "the fields of new goals.",
        {
            "fields_MB": "ms",
            "first_s": "ratio",
            "step_ms": "ms",
            "step_p95_ms": "ms",
            "errands": "count",
            "conflicts": "count",
        },
        sizes,
    ),
)
