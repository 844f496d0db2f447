"""Vehicles that follow the standard's text, behind a real broker: none meets another one, whatever goes wrong."""

import json
import time

import numpy as np
import pytest
from mqtt_broker import OPEN, SIDE, Listener, errand, keep_busy
from vda5050_schemas import schema_faults

from gpu_planners.vda5050.errands import ErrandError
from gpu_planners.vda5050.simulated import Network

ROW = [1, 1, *[0, 0, 1] * 4]
AISLES = np.array([[1] * 14, [1] * 14, ROW, ROW, [1] * 14, [1] * 14, ROW, ROW, [1] * 14, [1] * 14], np.uint8)


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


def test_all_that_is_said_fits_the_schemas(hall_of):
    zones = {"mapId": "map", "zoneSetId": "z1", "zones": [corners("BLOCKED", 5, 4, 7, 6)]}
    hall = hall_of(OPEN, control=False, zones=zones)
    listener = Listener(hall.address, "uagv/#", "vda5050/#")
    hall.add("a", (0, 0)), hall.add("b", (9, 11), "3.0")
    hall.begin()
    hall.wait(lambda: len(hall.control.vehicles) == 2)
    errand(hall, "x", "9_1", vehicle="simulated/a", actions=[{"actionType": "pick"}], theta=1.0)
    errand(hall, "y", "0_10", vehicle="simulated/b", actions=[{"actionType": "drop", "blockingType": "SOFT"}])
    hall.wait_for("x", "y")
    for id in hall.control.vehicles:
        hall.control.ask(id, "startPause")
    errand(hall, "far", "5_0", vehicle="simulated/a")
    hall.wait(lambda: all(vehicle.paused for vehicle in hall.vehicles))
    hall.control.cancel("far")
    hall.wait(lambda: not hall.control.vehicles["simulated/a"].cancelling)
    seen = list(listener.all())
    listener.broker.close()
    topics = {topic.rpartition("/")[2] for topic, _ in seen}
    assert topics >= {"order", "instantActions", "state", "connection", "factsheet", "zoneSet"}
    assert [fault for topic, message in seen for fault in schema_faults(message, topic.rpartition("/")[2])] == []
    assert any(node["actions"] for topic, message in seen if topic.endswith("order") for node in message["nodes"])


def corners(kind, x0, y0, x1, y1, name="z", **more):
    around = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    return {"zoneId": name, "zoneType": kind, "vertices": [{"x": x, "y": y} for x, y in around], **more}


def test_a_broker_that_is_killed_and_comes_back_loses_nothing(hall_of, mosquitto):
    hall = hall_of()
    hall.add_many(5)
    hall.wait(lambda: hall.control.fleet.on_map == 5)
    for k in range(10):
        errand(hall, f"e{k}", f"{k % 10}_{(5 * k) % 12}", actions=[{"actionType": "pick"}] if k % 2 else [])
    for _ in range(2):
        hall.wait(lambda: sum(vehicle.driving for vehicle in hall.vehicles) > 1)
        mosquitto.kill()
        time.sleep(2.5)
        assert not any(vehicle.driving for vehicle in hall.vehicles), "they stop at the ends of their bases"
        mosquitto.start()
    hall.wait_for(*(f"e{k}" for k in range(10)), seconds=120)
    assert hall.least > SIDE


def test_fleet_control_that_starts_again_goes_on(hall_of, tmp_path):
    kept, listed = str(tmp_path / "state.json"), str(tmp_path / "tasks.journal")
    hall = hall_of(rules={"state_file": kept, "task_file": listed}, control=False)
    hall.add_many(6, network=Network(0.05, 0.05, 0.05, 0.05))
    hall.begin()
    hall.wait(lambda: hall.control.fleet.on_map == 6)
    for k in range(12):
        errand(hall, f"e{k}", f"{k % 10}_{(7 * k) % 12}")
    for _ in range(2):
        hall.wait(lambda: sum(vehicle.driving for vehicle in hall.vehicles) > 2)
        hall.end_control()
        time.sleep(1.0)
        hall.begin()
    hall.wait_for(*(f"e{k}" for k in range(12)), seconds=120)
    assert hall.least > SIDE


def test_a_paused_vehicle_stands_and_others_go_around(hall_of):
    hall = hall_of(np.ones((3, 10), np.uint8))
    one = hall.add("stands", (1, 5))
    hall.add("goes", (1, 0), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    hall.control.ask("simulated/stands", "startPause")
    hall.wait(lambda: one.paused)
    errand(hall, "own", "1_9", vehicle="simulated/stands")
    errand(hall, "by", "1_9", vehicle="simulated/goes")
    hall.wait_for("by")
    assert one.pose[:2] == [5.5, 1.5] and hall.state("own") == "UNDERWAY"
    hall.control.ask("simulated/stands", "stopPause")
    errand(hall, "away", "1_0", vehicle="simulated/goes")
    hall.wait_for("own", "away")
    assert hall.least > SIDE


def test_an_errand_that_is_cancelled_stops_its_vehicle_which_takes_the_next_one(hall_of):
    hall = hall_of()
    for version, serial, row in (("2.1", "a", 0), ("3.0", "b", 9)):
        hall.add(serial, (row, 0), version, speed=1.0)
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    for serial, row in (("a", 0), ("b", 9)):
        errand(hall, serial, f"{row}_11", vehicle=f"simulated/{serial}")
    hall.wait(lambda: all(vehicle.pose[0] > 2.0 for vehicle in hall.vehicles))
    for serial in "ab":
        hall.control.cancel(serial)
    hall.wait(lambda: all(vehicle.idle and vehicle._cancelled for vehicle in hall.vehicles))
    assert all(vehicle.pose[0] < 10 for vehicle in hall.vehicles)
    for serial, row in (("a", 9), ("b", 0)):
        errand(hall, f"{serial}2", f"{row}_0", vehicle=f"simulated/{serial}")
    hall.wait_for("a2", "b2")
    assert hall.least > SIDE
    with pytest.raises(ErrandError, match="cannot be cancelled: it is CANCELLED"):
        hall.control.cancel("a")


def test_actions_that_fail_and_actions_that_nobody_has(hall_of):
    hall = hall_of()
    hall.add("a", (0, 0), "3.0", failing=("lift",))
    hall.wait(lambda: "simulated/a" in hall.control.vehicles and hall.control.vehicles["simulated/a"].factsheet)
    errand(hall, "bad", "3_3", actions=[{"actionType": "lift"}])
    hall.wait_for("bad", state="FAILED")
    with pytest.raises(ErrandError, match="no action 'paint' on nodes"):
        errand(hall, "paint", "2_2", vehicle="simulated/a", actions=[{"actionType": "paint"}])
    with pytest.raises(ErrandError, match="with blockingType SOFT, HARD, not NONE"):
        errand(hall, "soft", "2_2", vehicle="simulated/a", actions=[{"actionType": "pick", "blockingType": "NONE"}])
    errand(hall, "any", "2_2", actions=[{"actionType": "paint"}])
    errand(hall, "here", "3_3", actions=[{"actionType": "pick"}])
    hall.wait_for("here")
    assert hall.state("any") == "WAITING", "nobody can do it"


def test_zones_of_a_running_fleet(hall_of):
    release = corners("RELEASE", 4, 0, 6, 10, "r")
    slow = corners("SPEED_LIMIT", 8, 0, 10, 10, "s", maximumSpeed=0.8)
    hall = hall_of(zones={"mapId": "map", "zoneSetId": "one", "zones": [release, slow]})
    new, old = hall.add("new", (2, 0), "3.0"), hall.add("old", (7, 0), "2.1")
    hall.wait(lambda: any(status == "ENABLED" for _, status in new.zone_sets.values()))
    listener = Listener(hall.address, "+/+/+/+/order", "+/+/+/+/responses")
    errand(hall, "n", "2_11", vehicle="simulated/new"), errand(hall, "o", "7_11", vehicle="simulated/old")
    hall.wait_for("n", "o")
    seen = list(listener.all())
    answers = [one["grantType"] for topic, m in seen if topic.endswith("responses") for one in m["responses"]]
    assert "GRANTED" in answers
    limits = {"maximumSpeed": set(), "maxSpeed": set()}
    for topic, message in seen:
        for edge in message["edges"] if topic.endswith("order") else ():
            for word in limits.keys() & edge.keys():
                limits[word].add(edge[word])
    assert limits == {"maximumSpeed": {0.8}, "maxSpeed": {0.8}}
    wall = corners("BLOCKED", 5.1, 0, 5.9, 8.9, "wall")
    zones = {"mapId": "map", "zoneSetId": "two", "zones": [wall]}
    assert listener.broker.send("gpu_planners/errands", json.dumps({"zoneSets": [zones]}).encode(), 1)
    hall.wait(lambda: hall.control.telling.zones.id == "two")
    rows = []
    errand(hall, "back", "7_0", vehicle="simulated/old")
    hall.wait(lambda: rows.append(tuple(old.pose[:2])) or hall.state("back") == "DONE")
    assert any(y > 9 for _, y in rows) and not any(5.0 < x < 6.0 and y < 9 for x, y in rows)
    listener.broker.close()
