"""Messages of vehicles: what breaks the standard's tables is refused, with the field, its value and what is allowed."""

import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'gpu_planners[vda5050]'")

from vda5050_schemas import schema_faults

from gpu_planners.vda5050.broker import Address
from gpu_planners.vda5050.messages import (
    MessageError,
    check_header,
    opened,
    read_connection,
    read_factsheet,
    read_state,
    stamp_of,
)
from gpu_planners.vda5050.simulated import SimulatedVehicle
from gpu_planners.vda5050.versions import VERSIONS

BOTH = pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)


@pytest.fixture(scope="module")
def vehicles():
    """One of each version, which never reaches a broker."""
    found = {one: SimulatedVehicle(Address("127.0.0.1", 1), one, "7", (1.0, 2.0, 0.5)) for one in VERSIONS.values()}
    yield found
    for vehicle in found.values():
        vehicle.broker.close()


def state_of(vehicles, version):
    return json.loads(vehicles[version].state())


@BOTH
def test_a_state_is_read(vehicles, version):
    message = state_of(vehicles, version)
    message["errors"] = [
        {
            "errorType": "X",
            "errorLevel": "FATAL",
            "errorReferences": [{"referenceKey": "orderId", "referenceValue": "o"}],
        }
    ]
    message["nodeStates"] = [
        {"nodeId": "a", "sequenceId": 2, "released": True},
        {"nodeId": "b", "sequenceId": 4, "released": False},
    ]
    state = read_state(message, version)
    assert state.pose == (1.0, 2.0, 0.5) and state.map_id == "map" and state.localised
    assert state.base == [("a", 2)] and state.horizon == [("b", 4)] and not state.idle
    assert state.errors[0].references == {"orderId": "o"} and state.stopped == "FATAL X"


@BOTH
def test_what_a_simulated_vehicle_says_fits_the_schemas(vehicles, version):
    vehicle = vehicles[version]
    assert schema_faults(state_of(vehicles, version), "state") == []
    sheet = json.loads(vehicle._message("factsheet", **vehicle.factsheet()))
    assert schema_faults(sheet, "factsheet") == [] and read_factsheet(sheet, version).width == 0.7
    online = json.loads(vehicle._message("connection", connectionState="ONLINE"))
    assert schema_faults(online, "connection") == [] and read_connection(online, version) == "ONLINE"


WRONG = [
    ("orderId", 5, "orderId is 5; allowed: a text"),
    ("orderUpdateId", -1, "orderUpdateId is -1; allowed: 0 .. 4294967295"),
    ("orderUpdateId", True, "orderUpdateId is True"),
    ("driving", "yes", "driving is 'yes'; allowed: true or false"),
    ("operatingMode", "auto", "operatingMode is 'auto'; allowed: "),
    ("nodeStates", {}, "nodeStates is {}; allowed: an array"),
    ("nodeStates", [{"nodeId": "a", "sequenceId": 1}], "nodeStates[0] has no 'released'"),
    ("errors", [{"errorType": "x", "errorLevel": "BAD"}], "errors[0].errorLevel is 'BAD'; allowed: WARNING"),
    ("timestamp", "yesterday", "timestamp is 'yesterday'; allowed: as 2026-"),
    ("safetyState", None, "has no 'safetyState'"),
]


@BOTH
@pytest.mark.parametrize(("name", "value", "text"), WRONG)
def test_a_wrong_state_is_refused_by_name(vehicles, version, name, value, text):
    message = state_of(vehicles, version)
    message[name] = value
    with pytest.raises(MessageError) as error:
        read_state(message, version)
    assert text in str(error.value)


@BOTH
def test_a_position_that_is_no_number_is_refused(vehicles, version):
    message = state_of(vehicles, version)
    message[version.word("position")]["x"] = math.inf
    with pytest.raises(MessageError, match=r"x is inf; allowed: a finite number"):
        read_state(message, version)


@BOTH
def test_a_header_fits_its_topic(vehicles, version):
    message = state_of(vehicles, version)
    check_header(message, version, "simulated", "7")
    with pytest.raises(MessageError, match=r"serialNumber is '7'; allowed on this topic: '8'"):
        check_header(message, version, "simulated", "8")
    with pytest.raises(MessageError, match="version is '1.1.0'"):
        check_header(message | {"version": "1.1.0"}, version, "simulated", "7")


@pytest.mark.parametrize(
    "payload", [b"", b"\xff\xfe", b"{", b"[]", b"7", b"[" * 100_000, b'{"a": 1' + b"0" * 9_000_000]
)
def test_what_is_no_object_is_refused(payload):
    with pytest.raises(MessageError):
        opened(payload)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01T00:00:10.25Z", 10.25),
        ("1970-01-01T00:00:10.123456789Z", 10.123456789),
        ("1970-01-01T01:00:10.5+01:00", 10.5),
        ("1970-01-01T01:00:10+0100", 10.0),
        ("1970-01-01T00:00:10", 10.0),
    ],
)
def test_timestamps(text, seconds):
    assert stamp_of(text) == pytest.approx(seconds, abs=1e-9)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
def test_whatever_a_message_holds_it_is_read_or_refused(vehicles, data):
    version = data.draw(st.sampled_from([*VERSIONS.values()]))
    message = copy.deepcopy(state_of(vehicles, version))
    for name in data.draw(st.lists(st.sampled_from(sorted(message)), min_size=1, max_size=3)):
        message[name] = data.draw(JSON)
    try:
        read_state(message, version)
    except MessageError as error:
        assert str(error)
