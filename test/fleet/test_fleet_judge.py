"""Our simulator counts what the official judge of the League of Robot Runners counts, where the judge is built.

GPU_PLANNERS_JUDGE names the folder of its Start-Kit (benchmarks/judge/README.md).
"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.fleet_instances import published, simulate
from benchmarks.judge import __main__ as command
from benchmarks.problems import MissingDataError, data_dir
from gpu_planners.fleet import Settings
from gpu_planners.grid import FleetPlanner

KIT = Path(command.KIT).expanduser()
needs_judge = pytest.mark.skipif(not (KIT / "build" / "lifelong").exists(), reason=f"the judge is not built in {KIT}")


@needs_judge
@pytest.mark.parametrize("name, steps", [("MR23-I-07", 150), ("TR23-random", 200)])
def test_simulator_counts_as_the_judge(name, steps, monkeypatch):
    try:
        instance, folder = published(name), data_dir(None) / "lorr2023"
    except MissingDataError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = SimpleNamespace(year=2023, budget=0.0, steps=steps, limit=60, preprocess=300)
    figures = command.judged(command.built(KIT), folder, instance, options)
    done, _ = simulate(FleetPlanner(instance.grid, "turning", "cpu", Settings()), instance, steps)
    assert figures["all_valid"] == "Yes"
    assert figures["finished"] == done.sum() > 0


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(command.JudgeError, match=r"git is not there: missing: apt-get install git .*libboost-log-dev"):
        command.built(tmp_path / "kit")
