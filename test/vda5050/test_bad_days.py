"""Messages that break the standard; vehicles that people drive, that stand, are lost or have other orders; brokers that
ask who comes."""

import json
import math
import shutil
import subprocess
import time

import numpy as np
import pytest
from mqtt_broker import OPEN, SIDE, Hall, Listener, Mosquitto, errand

from gpu_planners.errors import SettingsError
from gpu_planners.grid import GridMap
from gpu_planners.vda5050.broker import Address, Broker
from gpu_planners.vda5050.layout import Layout
from gpu_planners.vda5050.messages import timestamp
from gpu_planners.vda5050.settings import Speaking


def faults(hall):
    return "\n".join(hall.control.all_faults())


def test_bad_messages_are_refused_by_name_and_the_fleet_goes_on(hall_of):
    hall = hall_of()
    good = hall.add("good", (0, 0))
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    bad = Listener(hall.address)
    send = bad.broker.send
    state = json.loads(good.state())
    level = "uagv/v2/acme/ghost"
    for payload in (b"\x00\xff", b"[1]", json.dumps(state).encode(), b"{}"):
        assert send(f"{level}/state", payload)
    assert send(f"{good.level}/state", json.dumps(state | {"orderUpdateId": "seven"}).encode())
    assert send(f"{good.level}/connection", json.dumps(state | {"connectionState": "GONE"}).encode(), 1)
    assert send(f"{good.level}/factsheet", b'{"headerId": 1}')
    for one in (
        b"no",
        b'{"errands": 5}',
        b'{"errands": [{"errandId": "far", "x": 1e308, "y": 0.5}]}',
        b'{"errands": [{"errandId": "q", "node": "99_99"}], "pause": ["x", 7]}',
    ):
        assert send("gpu_planners/errands", one, 1)
    hall.wait(lambda: "vehicle 7 is not known" in faults(hall))
    found = faults(hall)
    for text in (
        "acme/ghost on state was refused: has no 'headerId'",
        "simulated/good on connection was refused: connectionState is 'GONE'; allowed: ONLINE",
        "simulated/good on factsheet was refused: has no 'timestamp'",
        "errand 'q': node is '99_99'; allowed: a node or station of the layout",
        "vehicle 'x' is not known; allowed: simulated/good",
    ):
        assert text in found, found
    assert hall.control.counts["refused"] >= 7 and "acme/ghost" not in hall.control.vehicles
    errand(hall, "goes", "9_11")
    hall.wait_for("goes")
    bad.broker.close()


def test_states_that_are_retained_old_or_doubled_do_not_count(hall_of):
    hall = hall_of()
    one = hall.add("one", (0, 0))
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    listener = Listener(hall.address)
    first = one.state()
    errand(hall, "away", "0_9")
    hall.wait(lambda: one.pose[0] > 4)
    for _ in range(20):
        assert listener.broker.send(f"{one.level}/state", first, retain=True)
        time.sleep(0.02)
    hall.wait_for("away")
    assert hall.control.counts["old"] >= 20
    hall.end_control()
    hall.begin()
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    assert hall.control.vehicles["simulated/one"].state.pose[0] == pytest.approx(9.5, abs=0.05)
    listener.broker.close()


def test_a_vehicle_that_people_drive_leaves_the_fleet_and_joins_again(hall_of):
    hall = hall_of(np.ones((3, 12), np.uint8))
    by_hand = hall.add("hand", (1, 0))
    hall.add("other", (1, 11), "3.0")
    hall.wait(lambda: hall.control.fleet.on_map == 2)
    errand(hall, "a", "1_3")
    hall.wait(lambda: by_hand.driving)
    by_hand.mode, by_hand.nodes, by_hand.actions = "MANUAL", [], {}
    by_hand._changed = True
    hall.wait(lambda: "is in mode MANUAL" in faults(hall))
    hall.wait_for("a")
    assert hall.control.errands.by_id["a"].vehicle == "simulated/other"
    by_hand.pose[:] = [6.5, 1.5, 0.0]
    by_hand._changed = True
    hall.wait(lambda: hall.control.vehicles["simulated/hand"].state.pose[0] == 6.5)
    errand(hall, "past", "1_0", vehicle="simulated/other")
    hall.wait_for("past")
    assert hall.least > SIDE
    by_hand.mode, by_hand._changed = "AUTOMATIC", True
    errand(hall, "back", "0_0", vehicle="simulated/hand")
    hall.wait_for("back")
    assert "MANUAL" not in faults(hall) and hall.least > SIDE


def test_an_emergency_stop_a_cut_connection_and_no_position(hall_of):
    hall = hall_of()
    stops, cut, line = (
        hall.add("stops", (0, 0)),
        hall.add("cut", (5, 0), "3.0"),
        hall.add("line", (9, 0), positions=False),
    )
    line.last = "9_0", 0
    hall.wait(lambda: hall.control.fleet.on_map == 3)
    for vehicle, row in ((stops, 0), (cut, 5), (line, 9)):
        errand(hall, vehicle.serial, f"{row}_11", vehicle=vehicle.id)
    hall.wait(lambda: all(vehicle.driving for vehicle in hall.vehicles))
    stops.stop, stops._changed = "MANUAL", True
    cut.broker.cut()
    hall.wait(lambda: "simulated/stops stands: emergency stop MANUAL" in faults(hall))
    hall.wait_for("cut", "line")
    assert hall.state("stops") == "UNDERWAY"
    stops.stop, stops._changed = "NONE", True
    hall.wait_for("stops")


def test_an_order_of_somebody_else_is_cancelled(hall_of):
    hall = hall_of(control=False)
    one = hall.add("one", (4, 0), speed=0.5)
    other = Listener(hall.address)
    hall.wait(lambda: hall.vehicles[0].broker.up, 10)
    at = [(f"{4}_{c}", *hall.layout.point((4, c))) for c in range(12)]
    order = {
        "headerId": 0,
        "timestamp": timestamp(),
        "version": "2.1.0",
        "manufacturer": "simulated",
        "serialNumber": "one",
        "orderId": "foreign",
        "orderUpdateId": 0,
        "nodes": [
            {
                "nodeId": name,
                "sequenceId": 2 * k,
                "released": True,
                "actions": [],
                "nodePosition": {"x": x, "y": y, "mapId": "map", "allowedDeviationXY": 0.1},
            }
            for k, (name, x, y) in enumerate(at)
        ],
        "edges": [
            {
                "edgeId": f"e{k}",
                "sequenceId": 2 * k + 1,
                "released": True,
                "startNodeId": "",
                "endNodeId": "",
                "actions": [],
            }
            for k in range(11)
        ],
    }
    assert other.broker.send(f"{one.level}/order", json.dumps(order).encode())
    hall.wait(lambda: one.driving)
    hall.begin()
    hall.wait(lambda: one.idle and hall.control.fleet.on_map == 1)
    assert one.pose[0] < 11
    errand(hall, "ours", "0_0")
    hall.wait_for("ours")
    other.broker.close()


def test_a_vehicle_that_is_too_large_is_sent_nowhere(hall_of):
    hall = hall_of()
    hall.add("large", (0, 0), side=15.0)
    hall.wait(lambda: "is 15 x 15 m, which takes 17 tiles of 1 m" in faults(hall))
    errand(hall, "no", "3_3")
    time.sleep(1.5)
    assert hall.state("no") == "WAITING" and hall.control.telling.orders == 0


def test_vehicles_are_as_large_as_their_factsheets_say(hall_of):
    hall = hall_of()
    large, other = hall.add("large", (1, 1), side=2.5), hall.add("other", (8, 9), side=1.2, version="3.0")
    for k, tile in enumerate([(0, 5), (9, 3), (5, 11)]):
        hall.add(f"small{k}", tile)
    hall.wait(lambda: hall.control.fleet.on_map == 5)
    sizes = [hall.control.fleet.size_of(f"simulated/{name}") for name in ("large", "other", "small0")]
    assert sizes == [3, 3, 1]
    errand(hall, "across", "8_10", vehicles=["simulated/large"])
    errand(hall, "back", "1_1", vehicles=["simulated/other"])
    errand(hall, "corner", "9_0")  # where no large one fits
    errand(hall, "edge", "0_11")
    hall.wait_for("across", "back", "corner", "edge")
    assert (large.pose[:2], other.pose[:2]) == (pytest.approx((10.5, 8.5), abs=0.2), pytest.approx((1.5, 1.5), abs=0.2))
    assert hall.gap > 0


# ---- brokers that ask who comes ----


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += [
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout",
        folder / "key.pem",
        "-out",
        folder / "ca.pem",
    ]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    return folder


def test_encrypted_with_user_and_password(certificates, tmp_path):
    if shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto_passwd is not installed: apt install mosquitto")
    users = tmp_path / "users"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(users), "fleet", "secret"], check=True, capture_output=True)
    listener = [f"certfile {certificates / 'ca.pem'}", f"keyfile {certificates / 'key.pem'}"]
    mosquitto = Mosquitto(tmp_path, ["allow_anonymous false", f"password_file {users}"], listener)
    ca = str(certificates / "ca.pem")
    address = Address("127.0.0.1", mosquitto.port, "fleet", "secret", ca=ca)
    hall = Hall(address, Layout(GridMap(OPEN, 4, 1.0)))
    wrong = Broker(Address("127.0.0.1", mosquitto.port, "fleet", "guess", ca=ca), "x", [])
    plain = Broker(Address("127.0.0.1", mosquitto.port, "fleet", "secret"), "y", [])
    try:
        wrong.start(), plain.start()
        hall.add("one", (0, 0))
        hall.wait(lambda: hall.control.fleet.on_map == 1)
        errand(hall, "goes", "9_11")
        hall.wait_for("goes")
        hall.wait(lambda: "refuses this client" in wrong.fault)
        assert not wrong.up and not plain.up
    finally:
        wrong.close(), plain.close(), hall.close(), mosquitto.kill()


def test_files_that_are_no_certificates_are_refused(tmp_path):
    (tmp_path / "ca.pem").write_text("no")
    with pytest.raises(SettingsError, match=r"TLS files .*ca\.pem"):
        Broker(Address("localhost", ca=str(tmp_path / "ca.pem")), "x", [])


def test_a_key_without_a_certificate_is_refused():
    with pytest.raises(SettingsError, match="TLS key 'key.pem' has no certificate"):
        Broker(Address("localhost", key="key.pem"), "x", [])


@pytest.mark.parametrize(("name", "text"), [("interface", "a/b"), ("interface", "#"), ("topic", "a/+")])
def test_a_name_in_topics_has_no_wildcards(name, text):
    with pytest.raises(SettingsError, match=f"{name} is '.*'; allowed: .*level.* of a topic"):
        Speaking(**{name: text})


def test_a_broker_that_is_not_there_is_told_of():
    broker = Broker(Address("127.0.0.1", 1), "x", [])
    broker.start()
    until = time.monotonic() + 20
    while "cannot be reached" not in broker.fault and time.monotonic() < until:
        time.sleep(0.05)
    assert broker.fault == "it cannot be reached" and not broker.send("a", b"b") and math.isfinite(until)
    broker.close()


def test_a_vehicle_that_goes_astray_is_stopped_and_goes_on_from_where_it_is(hall_of):
    hall = hall_of()
    one = hall.add("one", (0, 0), speed=1.0)
    hall.wait(lambda: hall.control.fleet.on_map == 1)
    errand(hall, "a", "0_11")
    hall.wait(lambda: one.pose[0] > 2.0)
    first = one.order
    one.pose[1] += 3.0  # it has lost its way, or was pushed
    one._changed = True
    hall.wait(lambda: one._cancelled and one.idle)
    hall.wait_for("a")
    assert one.order != first and one.pose[0] == pytest.approx(11.5, abs=0.05)
