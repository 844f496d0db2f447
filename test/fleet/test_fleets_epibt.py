"""The benchmark beside EPIBT: what it gives the peer's program, and what it says without one."""

import sys

import numpy as np

from benchmarks import fleets_epibt, report
from benchmarks.fleet_instances import Instance
from benchmarks.harness import Context

PROGRAM = """#!{python}
import sys
from pathlib import Path

told = dict(line.split(" = ") for line in Path(sys.argv[1]).read_text().splitlines())
assert told["planner_type"] == "EPIBT_LNS" and told["graph_guidance_type"] == "ENABLE" and told["step_time"] == "50"
rows = Path(told["map_file"]).read_text().splitlines()
agents = Path(told["agents_path"]).read_text().splitlines()
tasks = Path(told["tasks_path"]).read_text().splitlines()
assert rows == ["type octile", "height 2", "width 3", "map", "..@", "..."], rows
assert agents == ["agent id,row,col", "0,0,1", "1,1,2"], agents
assert tasks == ["targets", "3", "0", "5", "1"], tasks
out = Path(told["output_path"]) / "0"
out.mkdir(parents=True)
(out / "metrics.csv").write_text(f"metric,value\\nfinished tasks,{{told['steps_num']}}\\navg step time (ms),49.5\\n")
"""


def rows_of(monkeypatch):
    free = np.array([[1, 1, 0], [1, 1, 1]], bool)
    case = Instance("corner", free, np.array([[0, 1], [1, 2]]), np.array([3, 0, 5, 1]), 10, 20)
    monkeypatch.setattr(fleets_epibt, "cases", lambda _: [(case, 4)])
    monkeypatch.setattr(fleets_epibt, "published", lambda *_: case)
    return fleets_epibt.beside(Context(("cpu",), {}, quick=True))


def test_the_peer_gets_the_same_map_starts_and_errands(monkeypatch, tmp_path):
    program = tmp_path / "bin" / "main"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv(fleets_epibt.PEER, str(program))
    ours, peer = rows_of(monkeypatch)
    assert not peer.note, peer.note
    assert peer.figures == {"agents": 2, "steps": 4, "errands": 4, "step_ms": 49.5, "of_best": 0.5}
    assert ours.figures["over_epibt"] == ours.figures["errands"] / 4 and ours.figures["conflicts"] == 0
    (benchmark,) = fleets_epibt.BENCHMARKS
    assert set(benchmark.columns) == set(ours.figures) <= set(report.HEADINGS)


def test_a_missing_or_broken_peer_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv(fleets_epibt.PEER, raising=False)
    ours, peer = rows_of(monkeypatch)
    assert ours.figures and not peer.figures and peer.note == "EPIBT does not name EPIBT's program"
    broken = tmp_path / "main"
    broken.write_text("#!/bin/sh\necho no map\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv(fleets_epibt.PEER, str(broken))
    assert rows_of(monkeypatch)[1].note == "ended with 3: no map"
