"""Our simulator of the League's rules of 2024 counts what its judge counts, where that is built."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.fleet_tasks import TaskInstance, published_tasks, simulate_tasks
from benchmarks.judge import __main__ as command
from benchmarks.problems import MissingDataError, data_dir
from gpu_planners.fleet import FleetPlanner, conflicts

KIT = Path(command.kit_of(2024)).expanduser()
needs_judge = pytest.mark.skipif(not (KIT / "build" / "lifelong").exists(), reason=f"the judge is not built in {KIT}")


def test_finished_tasks_are_counted():
    """As many as an independent look at the positions finds: each task's errands, in order, by one agent."""
    rng = np.random.default_rng(0)
    free = np.ones((8, 9), bool)
    tiles = rng.permutation(np.argwhere(free))
    tasks = [tiles[rng.integers(0, len(tiles), rng.integers(1, 4))] for _ in range(40)]
    instance = TaskInstance("small", free, tiles[:6], tasks, open=9)
    fleet = FleetPlanner(instance.grid, "turning", "cpu")
    finished, walked, _ = simulate_tasks(fleet, instance, 120)
    assert conflicts(walked) == [] and finished == sorted(finished) and finished[-1] > 20
    visits = sum((np.diff(walked[:, agent], axis=0) != 0).any(axis=1).sum() for agent in range(6))
    legs = sorted(np.abs(np.diff(task, axis=0)).sum() for task in tasks)
    assert visits >= sum(legs[: finished[-1]])  # nobody has finished more than its moves allow


@needs_judge
def test_simulator_counts_as_the_judge(monkeypatch):
    try:
        instance, folder = published_tasks("RANDOM-02"), data_dir(None) / "lorr2024"
    except MissingDataError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = SimpleNamespace(year=2024, budget=0.0, steps=120, limit=60, preprocess=300)
    figures = command.judged(command.built(KIT, 2024), folder, instance, options)
    ours = command.simulated(None, None, instance, options)
    assert figures["all_valid"] == ours["all_valid"] == "Yes" and figures["finished"] == ours["finished"] > 0


KIT_2026 = Path(command.kit_of(2026)).expanduser()


@pytest.mark.skipif(not (KIT_2026 / "build" / "lifelong").exists(), reason=f"the judge is not built in {KIT_2026}")
def test_delays_make_no_schedule_and_no_move_wrong(monkeypatch):
    """Each task that ended while a schedule was made was an error before."""
    try:
        instance, folder = published_tasks("room-example_150", 2026), data_dir(None) / "lorr2026"
    except MissingDataError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = SimpleNamespace(year=2026, budget=0.2, steps=240, limit=1, preprocess=60)
    figures = command.judged(command.built(KIT_2026, 2026), folder, instance, options)
    assert figures["all_valid"] == "Yes" and figures["finished"] > 5
