"""A mosquitto of one's own, that can be killed and started again; and a fleet of simulated vehicles behind it."""

import functools
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'gpu_planners[vda5050]'")

from gpu_planners.compiling import fleet_parts
from gpu_planners.vda5050.broker import Address, Broker
from gpu_planners.vda5050.control import FleetControl
from gpu_planners.vda5050.errands import errand_of
from gpu_planners.vda5050.settings import FleetRules, Speaking
from gpu_planners.vda5050.simulated import SimulatedVehicle, simulate
from gpu_planners.vda5050.versions import VERSIONS

OPEN = np.ones((10, 12), np.uint8)
SIDE = 0.7  # of a vehicle's square body, in tiles
FAST = {"device": "cpu", "step_s": 0.4, "silent_after_s": 2.0}
SPEAKING = {"answer_s": 0.8, "status_s": 0.2}


@functools.cache
def compile_steps():
    """Else the first hall waits for it, for minutes where that is the first one on this machine."""
    rules = FleetRules(**FAST)
    fleet_parts(rules.device, rules.motion, rules.fleet)[0].run()


class Mosquitto:
    """port; lines: of its configuration, beside the listener's"""

    def __init__(self, folder, lines=("allow_anonymous true",), listener=()):
        binary = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        if binary is None:
            pytest.skip("mosquitto is not installed: apt install mosquitto")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if os.geteuid() == 0:
            lines = ["user root", *lines]  # else it becomes another user, who may not read the test's folder
        config = folder / "mosquitto.conf"
        config.write_text("\n".join([f"listener {self.port} 127.0.0.1", *listener, *lines, ""]))
        self._command, self._folder = [binary, "-c", str(config)], folder
        self.start()

    def start(self):
        with open(self._folder / "mosquitto.log", "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self._folder / "mosquitto.log").read_text())

    def kill(self):
        self._process.kill()
        self._process.wait()

    @property
    def address(self):
        return Address("127.0.0.1", self.port)


class Hall:
    """Vehicles that drive, fleet control, and what the vehicles themselves say of where they are.

    least: the least distance of two vehicles so far, in tiles, by the larger of the differences of x and y
    gap: likewise between their bodies, as squares, in metres
    """

    def __init__(self, address, layout, rules=None, speaking=None, control=True, **options):
        compile_steps()
        self.address, self.layout = address, layout
        self.rules, self.speaking = FleetRules(**(FAST | (rules or {}))), Speaking(**(SPEAKING | (speaking or {})))
        self.options, self.vehicles, self.control = options, [], None
        self.least = self.gap = np.inf
        self._stop, self._end = threading.Event(), None
        self._drive = threading.Thread(target=simulate, args=(self.vehicles, self._stop, self._look))
        self._drive.start()
        if control:
            self.begin()

    def add(self, serial, tile, version="2.1", **options):
        pose = (*self.layout.point(tile), 0.0)
        size = self.layout.grid.resolution
        options = {"speed": 3 * size, "turn": 9.0, "side": SIDE * size, "map_id": self.layout.map_id} | options
        vehicle = SimulatedVehicle(self.address, VERSIONS[version], serial, pose, **options)
        self.vehicles.append(vehicle)
        return vehicle

    def add_many(self, count, seed=0, **options):
        tiles = np.argwhere(self.layout.grid.costs)
        chosen = tiles[np.random.default_rng(seed).permutation(len(tiles))[:count]].tolist()
        return [self.add(f"{k:03}", tile, ("2.1", "3.0")[k % 2], seed=k, **options) for k, tile in enumerate(chosen)]

    def begin(self, **options):
        self.control = FleetControl(self.layout, self.address, self.rules, self.speaking, **(self.options | options))
        self._end = threading.Event()
        self._run = threading.Thread(target=self.control.run, args=(self._end,))
        self._run.start()

    def end_control(self):
        self._end.set()
        self._run.join()
        self.control.close()

    def close(self):
        self._stop.set()
        self._drive.join()
        if self._end is not None and not self._end.is_set():
            self.end_control()
        for vehicle in self.vehicles:
            vehicle.broker.close()

    def _look(self):
        vehicles = list(self.vehicles)  # the test's thread adds to them
        places = np.array([vehicle.pose[:2] for vehicle in vehicles])
        if len(places) > 1:
            apart = np.abs(places[:, None] - places[None]).max(axis=2) + np.diag(np.full(len(places), np.inf))
            self.least = min(self.least, apart.min() / self.layout.grid.resolution)
            sides = np.array([vehicle.side for vehicle in vehicles])
            self.gap = min(self.gap, (apart - (sides[:, None] + sides) / 2).min())

    def wait(self, condition, seconds=60.0, what="it"):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(f"{what} did not come about: {json.dumps(self.control.status(), indent=1)}")

    def state(self, errand):
        return self.control.errands.by_id[errand].state

    def wait_for(self, *errands, state="DONE", seconds=60.0):
        self.wait(lambda: all(self.state(one) == state for one in errands), seconds, f"{errands} {state}")


class Listener:
    """All messages on some topics: [(topic, object)]"""

    def __init__(self, address, *topics):
        self.broker = Broker(address, f"listener-{time.time_ns()}", [(topic, 1) for topic in topics])
        self.broker.start()
        until = time.monotonic() + 20
        while not self.broker.up:
            assert time.monotonic() < until, self.broker.fault
            time.sleep(0.01)

    def all(self):
        while not self.broker.arrived.empty():
            message = self.broker.arrived.get()
            yield message.topic, json.loads(message.payload)


def errand(hall, name, node, **more):
    found = errand_of({"errandId": name, "node": node, **more}, hall.layout)
    hall.control.submit(found)
    return found


def keep_busy(hall, done, seconds, seed=1):
    """Give errands to free tiles until so many are done."""
    rng, tiles, given = np.random.default_rng(seed), np.argwhere(hall.layout.grid.costs), 0
    until = time.monotonic() + seconds
    while True:
        every = list(hall.control.errands.by_id.values())
        finished = sum(one.state == "DONE" for one in every)
        if finished >= done:
            return finished
        assert time.monotonic() < until, f"{finished} done: {json.dumps(hall.control.status(), indent=1)}"
        for _ in range(len(hall.vehicles) - sum(not one.over for one in every)):
            row, col = tiles[rng.integers(len(tiles))]
            actions = [{"actionType": "pick"}] if given % 4 == 0 else []
            errand(hall, f"e{given}", f"{row}_{col}", actions=actions)
            given += 1
        time.sleep(0.1)
