"""The dispatcher behind VDA 5050: errands of several stops, who gets them, lost vehicles, batteries, restarts."""

import json
import time

import numpy as np
import pytest
from mqtt_broker import OPEN, SIDE, Listener, errand

from gpu_planners.errors import GpuPlannersError
from gpu_planners.grid import GridMap
from gpu_planners.vda5050.errands import ErrandError, errand_of
from gpu_planners.vda5050.layout import Layout

PICK, DROP = [{"actionType": "pick"}], [{"actionType": "drop"}]


def stops(*nodes_and_actions):
    return [{"node": node, "actions": actions} for node, actions in nodes_and_actions]


def send(listener, **content):
    assert listener.broker.send("gpu_planners/errands", json.dumps(content).encode(), 1)


def give(hall, name, *stops_, **more):
    found = errand_of({"errandId": name, "stops": stops(*stops_), **more}, hall.layout)
    hall.control.submit(found)


def done_actions(vehicle):
    return [id for id, one in vehicle.actions.items() if one[0] == "FINISHED"]


def test_an_errand_of_several_stops_is_done_stop_by_stop(hall_of):
    hall = hall_of()
    one = hall.add("one", (0, 0), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    seen = []
    give(hall, "a", ("0_9", PICK), ("5_9", []), ("5_2", DROP))
    hall.wait(lambda: seen.extend(done_actions(one)) or hall.state("a") == "DONE")
    assert list(dict.fromkeys(seen)) == ["a.0", "a.1"], "in this order"
    history = [event.what for event in hall.control.tasks.dispatcher().state("a").history]
    assert history == ["submitted", "assigned", "errand", "errand", "errand"]
    assert hall.control.status()["errands"]["a"]["stopsDone"] == 3
    assert one.pose[:2] == pytest.approx([2.5, 5.5], abs=0.05)


def test_priorities_releases_and_who_may_do_it(hall_of):
    hall = hall_of()
    hall.add("a", (0, 0)), hall.add("b", (0, 11), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    listener = Listener(hall.address)
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
    early = [{"errandId": f"e{k}", "node": f"{k}_6", "vehicles": ["simulated/a"]} for k in range(2, 6)]
    early.append({"errandId": "late", "node": "9_0", "release": soon, "vehicles": ["simulated/a", "simulated/b"]})
    send(listener, errands=early, prioritize=[{"errandId": "e5", "priority": 7}])
    hall.wait(lambda: "late" in hall.control.errands.by_id)
    hall.wait_for("e2", "e3", "e4", "e5")
    assert time.time() > 0 and hall.control.errands.by_id["e5"].priority == 7
    ended = {name: hall.control.tasks.dispatcher().state(name).history[-1] for name in ("e2", "e3", "e4", "e5")}
    assert (
        min(ended, key=lambda name: ended[name].time) == "e5"
        or ended["e5"].time <= sorted(event.time for event in ended.values())[1]
    ), "at most the one that was begun before came first"
    assert {event.robot for event in ended.values()} == {"simulated/a"}
    hall.wait_for("late")
    first = hall.control.tasks.dispatcher().state("late").history
    assert next(event.time for event in first if event.what == "assigned") >= int(time.time()) - 60
    listener.broker.close()


def test_a_vehicle_that_is_lost_gives_its_errand_back_which_begins_anew(hall_of):
    hall = hall_of(rules={"dead_after_s": 3.0})
    lost = hall.add("lost", (0, 0))
    hall.add("other", (9, 11), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    give(hall, "a", ("2_1", PICK), ("2_10", DROP))
    hall.wait(lambda: hall.control.errands.by_id["a"].at == 1 and 5 < lost.pose[0] < 8)
    assert hall.control.errands.by_id["a"].vehicle == lost.id
    hall.vehicles.remove(lost)  # it drives no more, and says nothing
    lost.broker.cut()
    lost.broker.close()
    hall.wait_for("a", seconds=90)
    history = hall.control.tasks.dispatcher().state("a").history
    assert "returned" in [event.what for event in history] and history[-1].robot == "simulated/other"
    assert "a.0+1" in done_actions(hall.vehicles[0]) or "a.1+1" in done_actions(hall.vehicles[0])
    hall.vehicles.append(lost)
    hall._look()
    assert hall.least > SIDE, "it keeps its tiles"


def test_who_is_on_the_way_to_it_loses_an_errand_at_once_where_it_is_lost(hall_of):
    hall = hall_of(rules={"dead_after_s": 600.0})
    near = hall.add("near", (0, 2), speed=0.5)
    hall.add("far", (9, 11), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    give(hall, "a", ("0_9", []))
    hall.wait(lambda: hall.control.errands.by_id["a"].vehicle == near.id and near.driving)
    hall.vehicles.remove(near)
    near.broker.cut()
    near.broker.close()
    hall.wait_for("a")
    assert hall.control.errands.by_id["a"].vehicle == "simulated/far"


def test_low_batteries_are_charged_and_errands_wait_or_go_to_others(hall_of):
    hall = hall_of(rules={"chargers": (0.5, 9.5), "parking": (11.5, 9.5, 10.5, 9.5)})
    listener = Listener(hall.address, "+/+/+/+/instantActions")
    low = hall.add("low", (0, 0), charge=15.0, drain=0.1, fill=40.0)
    hall.wait(lambda: low.charging, what="charging")
    assert low.pose[:2] == pytest.approx([0.5, 9.5], abs=0.05)
    assert hall.control.status()["vehicles"]["simulated/low"]["errand"] == "charge:simulated/low"
    give(hall, "a", ("0_5", PICK), ("4_5", DROP))
    hall.wait_for("a")
    assert low.charge > 80 and not low.charging
    hall.wait(lambda: low.pose[:2] == pytest.approx([10.5, 9.5], abs=0.05), what="parking")
    asked = [one["actionType"] for _, message in listener.all() for one in message["actions"]]
    assert asked.count("startCharging") >= 1 and asked.count("stopCharging") >= 1
    listener.broker.close()


def test_a_journal_survives_a_restart_and_a_second_control_is_refused(hall_of, tmp_path):
    kept = {"state_file": str(tmp_path / "state.json"), "task_file": str(tmp_path / "tasks.journal")}
    hall = hall_of(rules=kept)
    one = hall.add("one", (0, 0), speed=1.0)
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    give(hall, "a", ("0_4", PICK), ("9_4", DROP), priority=3, vehicles=["simulated/one", "simulated/two"])
    give(hall, "b", ("5_5", []), due="2099-01-01T00:00:00Z")
    hall.control.cancel("b")
    hall.wait(lambda: hall.control.errands.by_id["a"].at == 1)
    with pytest.raises(Exception, match="in use by another process"):
        hall.begin()
    before = hall.control
    hall.end_control()
    hall.begin()
    assert hall.control is not before
    a, b = (hall.control.errands.by_id[name] for name in "ab")
    assert (a.at, a.priority, a.vehicle, a.vehicles) == (1, 3, one.id, ("simulated/one", "simulated/two"))
    assert b.state == "CANCELLED" and [stop.actions for stop in a.stops] == [
        [{"blockingType": "HARD", "actionParameters": [], "actionType": kind, "actionId": f"a.{k}"}]
        for k, kind in enumerate(("pick", "drop"))
    ]
    hall.wait_for("a")
    history = [event.what for event in hall.control.tasks.dispatcher().state("a").history]
    assert history.count("errand") == 2 and "returned" not in history


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"errandId": "q", "stops": []}, "stops is empty; allowed: one stop at least"),
        ({"errandId": "q", "stops": [{"node": "0_0"}], "node": "1_1"}, "it has stops and a goal of its own"),
        ({"errandId": "q", "stops": [{"actions": []}]}, "it has no goal; allowed: node, or x and y"),
        ({"errandId": "q", "node": "0_0", "priority": 1.5}, "priority is 1.5; allowed: whole numbers"),
        ({"errandId": "q", "node": "0_0", "release": "soon"}, "timestamp is 'soon'"),
        ({"errandId": "q", "node": "0_0", "vehicles": [3]}, r"vehicles\[0\] is 3"),
    ],
)
def test_bad_errands_are_refused_by_name(content, text):
    from gpu_planners.grid import GridMap

    with pytest.raises(ErrandError, match=f"errand 'q': .*{text}"):
        errand_of(content, Layout(GridMap(np.asarray(OPEN), 4, 1.0)))


def test_an_errand_that_nobody_can_do_waits_and_those_that_can_get_theirs(hall_of):
    hall = hall_of()
    hall.add("a", (0, 0), failing=("lift",)), hall.add("b", (0, 1), "3.0")
    hall.wait(lambda: len(hall.control.vehicles) == 2 and all(v.factsheet for v in hall.control.vehicles.values()))
    errand(hall, "lift", "5_5", actions=[{"actionType": "lift"}])
    errand(hall, "paint", "5_6", actions=[{"actionType": "paint"}])
    hall.wait_for("lift", state="FAILED")
    assert "simulated/a: an action failed" in hall.control.errands.by_id["lift"].text
    assert hall.state("paint") == "WAITING"


def test_a_strict_lane_is_gone_around_however_long_that_is(hall_of):
    costs = np.zeros((3, 44), np.uint8)
    costs[[0, 2]], costs[1, [0, -1]] = 1, 1
    corners = [{"x": x, "y": y} for x, y in ((3.0, 2.0), (4.0, 2.0), (4.0, 3.0), (3.0, 3.0))]
    lane = {"zoneId": "z", "zoneType": "DIRECTED", "vertices": corners, "direction": np.pi, "limitation": "STRICT"}
    hall = hall_of(costs, zones={"mapId": "map", "zoneSetId": "one", "zones": [lane]}, rules={"step_s": 0.3})
    row = next(r for r in (0, 2) if hall.control.layout.forbidden[r].any())
    one, places = hall.add("one", (row, 2), speed=6.0), []
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    give(hall, "a", (f"{row}_6", []))
    hall.wait(lambda: places.append(one.pose[0]) or hall.state("a") == "DONE", 120)
    assert max(places) > 40, "the short way is 4 tiles, 30 of which the planner takes to be a move against the lane"


def test_a_vehicle_waits_at_a_door_until_it_is_open(hall_of):
    costs = np.ones((3, 9), np.uint8)
    costs[[0, 2], 4] = 0
    hall = hall_of(costs, doors={"fire": [(1, 4)]})
    one = hall.add("one", (1, 0))
    listener = Listener(hall.address)
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    assert hall.control.status()["doors"] == {"fire": {"wanted": False, "open": False}}
    give(hall, "a", ("1_8", []))
    hall.wait(lambda: hall.control.status()["doors"]["fire"]["wanted"])
    hall.wait(lambda: one.pose[0] > 3.4)
    time.sleep(1.5)
    assert one.pose[0] < 3.6 and hall.state("a") == "UNDERWAY"
    send(listener, doors=[{"doorId": "fire", "open": True}, {"doorId": "no", "open": True}])
    hall.wait_for("a")
    hall.wait(lambda: not hall.control.status()["doors"]["fire"]["wanted"])
    assert "door 'no' is not known; allowed: fire" in hall.control.faults["errands"]
    send(listener, doors=[{"doorId": "fire", "open": False}])
    give(hall, "b", ("1_0", []))
    hall.wait(lambda: hall.control.status()["doors"]["fire"]["wanted"] and one.pose[0] < 5.6)
    time.sleep(1.0)
    assert one.pose[0] > 5.4 and hall.least > SIDE
    listener.broker.close()


def test_actions_of_errands_have_ids_of_their_own_whatever_errands_are_called():
    layout = Layout(GridMap(np.ones((2, 2), np.uint8), 4))
    seen = {}
    for name in ("a", "a.0", "a.1", "a.0+1", "a.0.1"):
        found = errand_of({"errandId": name, "node": "0_0", "actions": PICK * 2}, layout)
        for found.tries in range(3):
            for one in found.actions:
                assert seen.setdefault(one["actionId"], (name, found.tries)) == (name, found.tries)
    assert len(seen) == 5 * 3 * 2


@pytest.mark.parametrize("value", [2.5, 1e300, -1e7, "2"])
def test_a_priority_that_is_none_is_refused_first_and_later(hall_of, value):
    hall = hall_of()
    give(hall, "a", ("0_0", []))
    with pytest.raises(GpuPlannersError, match="priority is .*allowed"):
        give(hall, "b", ("0_0", []), priority=value)
    with pytest.raises(GpuPlannersError, match="priority is .*allowed"):
        hall.control.prioritize({"errandId": "a", "priority": value})
    hall.control.prioritize({"errandId": "a", "priority": 2.0})
    assert hall.control.errands.by_id["a"].priority == 2
