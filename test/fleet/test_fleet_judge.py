"""Our simulator counts what the official judge of the League of Robot Runners counts, where the judge is built.

GPU_PLANNERS_JUDGE names the judge's folder (benchmarks/judge/README.md).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from benchmarks.fleet_instances import published, simulate
from benchmarks.problems import MissingDataError, data_dir
from gpu_planners.fleet import Settings
from gpu_planners.grid import FleetPlanner

JUDGE = os.environ.get("GPU_PLANNERS_JUDGE", "")


@pytest.mark.skipif(not JUDGE, reason="GPU_PLANNERS_JUDGE does not name the folder of the official judge")
@pytest.mark.parametrize("name, steps", [("MR23-I-07", 150), ("TR23-random", 200)])
def test_simulator_counts_as_the_judge(name, steps, tmp_path):
    try:
        instance, folder = published(name), data_dir(None) / "lorr2023"
    except MissingDataError as error:
        pytest.skip(str(error))
    (tmp_path / "config.json").write_text(json.dumps({"python_path": str(ROOT / "benchmarks" / "judge")}))
    build = Path(JUDGE) / "build"
    paths = [str(ROOT), str(build), *(path for path in sys.path if path.endswith("site-packages"))]
    environment = os.environ | {"PYTHONPATH": ":".join(paths), "GPU_PLANNERS_BUDGET_S": "0", "CUDA_VISIBLE_DEVICES": ""}
    command = build / "lifelong", "-i", folder / f"{name}.json", "-o", "out.json", "--simulationTime", str(steps)
    subprocess.run(
        [*map(str, command), "--planTimeLimit", "60"], cwd=tmp_path, env=environment, check=True, timeout=300
    )
    verdict = json.loads((tmp_path / "out.json").read_text())
    fleet = FleetPlanner(instance.grid, "turning", "cpu", Settings(guidance="lanes"))
    done, _ = simulate(fleet, instance, steps)
    assert verdict["AllValid"] == "Yes"
    assert verdict["numTaskFinished"] == done.sum() > 0
