"""gpu-planners vda5050, as a user types it."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'gpu_planners[vda5050]'")

from checkout import ROOT
from mqtt_broker import Mosquitto

from gpu_planners.cli import main
from gpu_planners.fleet.dispatch.journal import Journal, read_line
from gpu_planners.fleet.dispatch.pool import Pool

HALL = "type octile\nheight 3\nwidth 6\nmap\n......\n.TT...\n......\n"
ERRANDS = [
    {"errandId": "a", "node": "0_5", "actions": [{"actionType": "pick"}]},
    {"errandId": "b", "node": "2_0"},
    {"errandId": "c", "x": 3.5, "y": 1.5, "theta": 1.57},
]


@pytest.fixture
def hall(tmp_path):
    (tmp_path / "hall.map").write_text(HALL)
    (tmp_path / "errands.json").write_text(json.dumps({"errands": ERRANDS}))
    return tmp_path


def frame_of(journal):
    return read_line(journal.read_bytes().split(b"\n")[0])["frame"]


def run(*words, folder, timeout=240):
    command = [sys.executable, "-m", "gpu_planners.cli", "vda5050", *map(str, words)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    }
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)


@pytest.mark.slow
def test_errands_by_simulated_vehicles_on_a_map_and_on_its_layout(hall):
    mosquitto = Mosquitto(hall)
    try:
        assert main(["vda5050", str(hall / "hall.map"), "--write-lif", str(hall / "hall.lif")]) == 0
        words = [
            "--broker",
            f"127.0.0.1:{mosquitto.port}",
            "--simulate",
            3,
            "--errands",
            "errands.json",
            "--until-done",
        ]
        for layout in ("hall.map", "hall.lif"):
            done = run(
                layout, *words, "--set", "device=cpu", "step_s=0.4", "--state-file", f"{layout}.state", folder=hall
            )
            assert done.returncode == 0, done.stderr
            assert {f"{name} DONE" for name in "abc"} <= {
                " ".join(line.split()[:2]) for line in done.stdout.splitlines()
            }
            pool = Pool(10)
            Journal(hall / f"{layout}.state.tasks", pool, frame_of(hall / f"{layout}.state.tasks")).close()
            assert {id: one.status.name for id, one in pool.ended.items()} == dict.fromkeys("abc", "DONE")
    finally:
        mosquitto.kill()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--broker", "host:port"], "'port' is no port; allowed: HOST or HOST:PORT"),
        (["--versions", "1.1"], "version is '1.1'; allowed: 2.1, 3.0"),
        (["--set", "step_s=0"], "step_s is 0; allowed: a number from 0.001"),
        (["--speak", "answer=1"], "NAME is one of interface"),
        (["--simulate", "99"], "--simulate 99; allowed: 1 .. 16"),
        (["--simulate", "2", "--sizes", "1,2"], "--sizes '1,2'; allowed: odd numbers from 1 to 15"),
        (["--simulate", "2", "--sizes", "5"], "--simulate 2: there is no room for all of them"),
    ],
)
def test_a_wrong_command_line_is_refused_by_name(hall, capsys, words, text):
    assert main(["vda5050", str(hall / "hall.map"), "--seconds", "1", *words]) == 2
    assert text in capsys.readouterr().err
