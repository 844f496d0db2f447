"""Fleets for life on small crowded maps, with EPIBT beside: the same starts and errands, one thread each."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpu_planners.fleet import conflicts
from gpu_planners.grid import FleetPlanner

from .fleet_instances import Instance, published, scattered, simulate
from .harness import Benchmark, Row, progress, told, with_data

PEER = "EPIBT"  # the environment variable that holds the path of EPIBT's program `bin/main`
BUDGET_S = 0.05  # of a step
STEPS, QUICK = 1000, 100
NAMES = ("TR23-random", "MR23-I-07")
TEAMS = {200: STEPS, 600: STEPS, 800: 2 * STEPS, 819: STEPS}  # on the map of the latter, 819 tiles: steps
OWN = (200, 600)  # on a random map of our own
SEED = 7  # of starts, errands and that map
ERRANDS = 100  # of each agent, after which they repeat
MAP_TYPES = "RANDOM", "GAME"  # whose guidance EPIBT takes: drawn for the League's random map, or lanes on any map


def cases(context):
    """(instance, steps)"""
    found = [(published(name, context.data), STEPS) for name in NAMES]
    rng, free = np.random.default_rng(SEED), found[-1][0].free
    tiles = np.argwhere(free)
    for agents, steps in TEAMS.items():
        starts, tasks = rng.permutation(tiles)[:agents], rng.choice(np.flatnonzero(free), ERRANDS * agents)
        found.append((Instance(f"its map, {agents} agents", free, starts, tasks), steps))
    found += [(replace(scattered(32, 32, n, 32 * 32, 0.2, SEED), name=f"our map, {n} agents"), STEPS) for n in OWN]
    return [(instance, QUICK if context.quick else steps) for instance, steps in found]


def beside(context):
    """Two rows of each case: ours, then the peer's."""

    def rows():
        found, theirs = [], published(NAMES[-1], context.data).free
        for instance, steps in cases(context):
            ours = _ours(instance, steps)
            peer = _peer(instance, steps, MAP_TYPES[not np.array_equal(instance.free, theirs)])
            if peer.figures:
                ours.figures["over_epibt"] = ours.figures["errands"] / max(1, peer.figures["errands"])
            found += [told(ours), told(peer)]
        return found

    return with_data("all", rows)


def _ours(instance, steps):
    fleet, taken = FleetPlanner(instance.grid, "turning", "cpu"), []
    simulate(fleet, instance, 2, BUDGET_S)  # compiled
    fleet = FleetPlanner(instance.grid, "turning", "cpu")
    bar = iter(progress(range(steps), instance.name))
    done, walked = simulate(fleet, instance, steps, BUDGET_S, lambda _, s: (taken.append(s), next(bar, None)))
    figures = _figures(instance, steps, int(done.sum()), 1e3 * float(np.mean(taken)))
    figures |= {"conflicts": len(conflicts(walked, ~instance.free)), "stuck": len(fleet.stuck)}
    return Row(instance.name, "ours, cpu", figures)


def _peer(instance, steps, map_type):
    """A row of EPIBT's program, on the same instance."""
    subject, program = "EPIBT_LNS, guidance", Path(os.environ.get(PEER, "")).absolute()
    if not program.is_file():
        return Row(instance.name, subject, note=f"{PEER} does not name EPIBT's program")
    (rows, cols), free = instance.free.shape, instance.free
    with tempfile.TemporaryDirectory() as folder:
        starts = [f"{agent},{row},{col}" for agent, (row, col) in enumerate(instance.starts)]
        tiles = ["".join(".@"[1 - tile] for tile in line) for line in free.astype(int)]
        files = {
            "map.txt": ["type octile", f"height {rows}", f"width {cols}", "map", *tiles],
            "agents.csv": ["agent id,row,col", *starts],
            "tasks.csv": ["targets", *map(str, instance.tasks)],
            "run.config": [
                f"map_type = {map_type}",
                "planner_type = EPIBT_LNS",
                "scheduler_type = CONST",
                "graph_guidance_type = ENABLE",
                f"map_file = {folder}/map.txt",
                f"tasks_path = {folder}/tasks.csv",
                f"agents_path = {folder}/agents.csv",
                f"output_path = {folder}/out",
                f"steps_num = {steps}",
                f"step_time = {round(1e3 * BUDGET_S)}",
            ],
        }
        for name, lines in files.items():
            (Path(folder) / name).write_text("\n".join(lines) + "\n")
        run = subprocess.run(
            [program, f"{folder}/run.config"],
            cwd=program.parent.parent,  # where its guidance lies
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        answer = Path(folder) / "out" / "0" / "metrics.csv"
        if not answer.is_file():
            return Row(instance.name, subject, note=f"ended with {run.returncode}: {run.stdout[-200:].strip()}")
        found = dict(line.split(",", 1) for line in answer.read_text().splitlines())
    figures = _figures(instance, steps, int(found["finished tasks"]), float(found["avg step time (ms)"]))
    return Row(instance.name, subject, figures)


def _figures(instance, steps, errands, step_ms):
    figures = {"agents": len(instance.starts), "steps": steps, "errands": errands, "step_ms": step_ms}
    if instance.best_known:
        figures["of_best"] = errands / steps / (instance.best_known / instance.steps)
    return figures


BENCHMARKS = (
    Benchmark(
        "fleets_epibt",
        "Fleets for life beside EPIBT",
        "Errands of agents that turn, 50 ms a step, by default settings. The peer is EPIBT's program (planner "
        "EPIBT_LNS, with guidance, each agent's errands fixed), built from its source and named by the environment "
        f"variable {PEER}, on the same starts and errands. Both use one thread: `taskset -c 0` keeps them on one core. "
        "On the League's random map it takes the guidance that its authors drew for that map, elsewhere lanes.",
        {
            "agents": "count",
            "steps": "count",
            "errands": "count",
            "over_epibt": "ratio",
            "of_best": "share",
            "step_ms": "ms",
            "conflicts": "count",
            "stuck": "count",
        },
        beside,
    ),
)
