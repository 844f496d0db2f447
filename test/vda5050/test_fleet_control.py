"""Vehicles that follow the standard's text, behind a real broker: none meets another one, whatever goes wrong."""

import json
import time

import numpy as np
import pytest
from mqtt_broker import SIDE, Hall, Mosquitto

from gpu_planners.grid import GridMap
from gpu_planners.vda5050.errands import errand_of
from gpu_planners.vda5050.layout import Layout
from gpu_planners.vda5050.simulated import Network

OPEN = np.ones((10, 12), np.uint8)
ROW = [1, 1, *[0, 0, 1] * 4]
AISLES = np.array([[1] * 14, [1] * 14, ROW, ROW, [1] * 14, [1] * 14, ROW, ROW, [1] * 14, [1] * 14], np.uint8)


@pytest.fixture
def mosquitto(tmp_path):
    broker = Mosquitto(tmp_path)
    yield broker
    broker.kill()


@pytest.fixture
def hall_of(mosquitto):
    halls = []

    def make(costs=OPEN, **options):
        halls.append(Hall(mosquitto.address, Layout(GridMap(costs, 4, 1.0)), **options))
        return halls[-1]

    yield make
    for hall in halls:
        hall.close()


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


@pytest.mark.parametrize("bad", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_twenty_vehicles_carry_out_errands_and_none_meets_another_one(hall_of, bad):
    network = Network(0.1, 0.1, 0.1, 0.2) if bad else Network()
    hall = hall_of(AISLES, control=False, speaking={"answer_s": 1.0 if bad else 10.0})
    vehicles = hall.add_many(20, network=network, action_s=0.3)
    hall.begin()
    keep_busy(hall, 30, 240)
    assert hall.least > SIDE, "two bodies overlap"
    assert bad or sum(vehicle.refused for vehicle in vehicles) == 0
    assert hall.control.counts["refused"] == 0 and not hall.control.fleet.clashes
