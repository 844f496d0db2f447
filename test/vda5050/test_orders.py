"""Orders that fit what a vehicle says it has, whatever was lost, beside one that takes them by the standard's text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'gpu_planners[vda5050]'")

from gpu_planners.grid import GridMap
from gpu_planners.vda5050.broker import Address, Broker
from gpu_planners.vda5050.errands import Errand, Stop
from gpu_planners.vda5050.layout import Layout
from gpu_planners.vda5050.messages import opened, read_state
from gpu_planners.vda5050.orders import MISMATCH, TOO_LONG, Composer, Order, Way, way_of
from gpu_planners.vda5050.simulated import SimulatedVehicle
from gpu_planners.vda5050.versions import VERSIONS

LAYOUT = Layout(GridMap(np.ones((1, 30), np.uint8), 4, 1.0))
BOTH = pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)


@pytest.fixture(autouse=True, scope="module")
def nobody_connects():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "start", lambda self: None)
        yield


class Pair:
    """A vehicle in a corridor, and what composes its orders, without a network between them."""

    def __init__(self, version):
        self.version = version
        self.vehicle = SimulatedVehicle(Address("127.0.0.1", 1), version, "1", (0.5, 0.5, 0.0), speed=10.0)
        self.composer, self.last, self.made = Composer(version, LAYOUT, 0.1, 50), ("", -1), 0
        self.now = 0.0

    def close(self):
        self.vehicle.broker.close()

    @property
    def state(self):
        return read_state(opened(self.vehicle.state()), self.version)

    def next(self, path, planned=(), errand=None):
        way = Way([(0, col) for col in path], [(0, col) for col in planned])
        last = self.last[1] if self.last[0] == self.state.order else -1
        return self.composer.next(self.state, way, errand, f"o{self.made}", last)

    def send(self, order, arrives=True):
        assert isinstance(order, Order), order
        self.last, self.made = (order.order, order.update), self.made + 1
        if arrives:
            head = {"headerId": self.made, "timestamp": ""}
            self.vehicle._take_order(head | order.body, self.now)
        return order

    def drive(self, seconds=1.0):
        for _ in range(int(seconds / 0.01)):
            self.now += 0.01
            self.vehicle._act(0.01)
            self.vehicle._drive(0.01)


@pytest.fixture
def pair(version):
    pair = Pair(version)
    yield pair
    pair.close()


def told(order):
    return [(node["nodeId"], node["sequenceId"], node["released"]) for node in order.body["nodes"]]


@BOTH
def test_base_and_horizon_updates_and_stitching(pair):
    order = pair.send(pair.next([0, 1, 2], [3, 4]))
    assert (order.update, told(order)) == (
        0,
        [("0_0", 0, True), ("0_1", 2, True), ("0_2", 4, True), ("0_3", 6, False), ("0_4", 8, False)],
    )
    assert pair.next([0, 1, 2], [3, 4]) is None, "it has that already"
    assert pair.next([0, 1, 2], [3, 4, 5]) is None, "a horizon that grows is worth no message"
    update = pair.send(pair.next([0, 1, 2, 3], [4]))
    assert (update.order, update.update) == (order.order, 1)
    assert told(update) == [("0_2", 4, True), ("0_3", 6, True), ("0_4", 8, False)]
    gone = pair.send(pair.next([0, 1, 2, 3], []))
    assert told(gone) == [("0_3", 6, True)] and gone.update == 2, "a horizon that is not planned any more goes"
    pair.drive()
    assert pair.vehicle.idle and pair.vehicle.last == ("0_3", 6) and pair.vehicle.refused == 0
    fresh = pair.send(pair.next([3, 4]))
    assert fresh.order != order.order and told(fresh)[0] == ("0_3", 0, True) and pair.vehicle.refused == 0


@BOTH
def test_an_update_that_was_lost_is_composed_anew_from_the_vehicles_decision_point(pair):
    pair.send(pair.next([0, 1]))
    pair.send(pair.next([0, 1, 2]), arrives=False)
    again = pair.send(pair.next([0, 1, 2, 3]))
    assert again.update == 2 and told(again) == [("0_1", 2, True), ("0_2", 4, True), ("0_3", 6, True)]
    assert pair.vehicle.refused == 0 and pair.vehicle.update == 2


@BOTH
def test_actions_are_sent_once_at_the_goal_and_where_a_vehicle_stands(pair):
    action = {"actionType": "pick", "actionId": "e.0", "blockingType": "HARD", "actionParameters": []}
    errand = Errand("e", [Stop((0, 2), 1.0, [action])])
    order = pair.send(pair.next([0, 1], [2], errand))
    assert not any(node["actions"] for node in order.body["nodes"]), "it is not released"
    update = pair.send(pair.next([0, 1, 2], [], errand))
    assert update.body["nodes"][-1]["actions"] == [action] and update.body["nodes"][-1]["nodePosition"]["theta"] == 1.0
    later = pair.send(pair.next([0, 1, 2, 3], [], errand))
    stitch = later.body["nodes"][0]
    assert stitch["actions"] == [action] and stitch == update.body["nodes"][-1], "a decision point does not change"
    pair.drive(3.0)
    assert pair.state.actions["e.0"][0] == "FINISHED" and pair.vehicle.refused == 0
    here = Errand("f", [Stop((0, 3), None, [action | {"actionId": "f.0"}])])
    order = pair.send(pair.next([3], [], here))
    assert told(order) == [("0_3", 0, True)] and order.body["nodes"][0]["actions"][0]["actionId"] == "f.0"
    pair.drive(2.0)
    assert pair.state.actions["f.0"][0] == "FINISHED" and pair.next([3], [], here) is None


@BOTH
def test_a_base_that_leads_elsewhere_is_a_mismatch(pair):
    pair.send(pair.next([0, 1, 2]))
    assert pair.next([0]) == MISMATCH and pair.next([0, 1]) == MISMATCH and pair.next([5, 6]) == MISMATCH
    assert pair.next([1, 2]) is None, "the fleet may know before the vehicle that it has left a node"


@BOTH
def test_a_new_order_begins_where_a_vehicle_stands_between_nodes(pair):
    pair.vehicle.pose[0] = 0.9
    order = pair.send(pair.next([0, 1]))
    assert pair.vehicle.refused == 0 and pair.vehicle.order == order.order
    pair.vehicle.nodes, pair.vehicle.pose[0] = [], 9.0
    assert pair.next([0, 1]) is None, "the fleet finds out first where it is"


def test_turns_are_no_nodes():
    tiles = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 1]])
    assert way_of(tiles[:3], tiles[3:]) == Way([(0, 0), (0, 1)], [(1, 1)])


@settings(deadline=None)
@given(data=st.data(), name=st.sampled_from([*VERSIONS]))
def test_whatever_is_lost_the_vehicle_drives_only_where_it_may_and_arrives(data, name):
    """A corridor that opens tile by tile, orders that are lost, an end of the vehicle's memory now and then."""
    pair, open_to, at = Pair(VERSIONS[name]), 0, 0
    try:
        for _ in range(data.draw(st.integers(5, 25))):
            open_to = min(29, open_to + data.draw(st.integers(0, 3)))
            at = int(pair.vehicle.pose[0])
            horizon = range(open_to + 1, min(30, open_to + 1 + data.draw(st.integers(0, 3))))
            order = pair.next(range(at, open_to + 1), horizon)
            assert order != MISMATCH
            if order is not None:
                pair.send(order, arrives=data.draw(st.booleans()))
            if data.draw(st.integers(0, 9)) == 0 and pair.vehicle.pose[0] % 1 == 0.5:
                pair.vehicle.nodes, pair.vehicle.order, pair.vehicle.last = [], "", ("", 0)  # it starts anew
            pair.drive(data.draw(st.sampled_from([0.02, 0.1, 0.5])))
            assert pair.vehicle.pose[0] <= open_to + 0.5 + 1e-9 and pair.vehicle.refused == 0
        for _ in range(3):
            order = pair.next(range(int(pair.vehicle.pose[0]), open_to + 1))
            if order is not None:
                pair.send(order)
            pair.drive(4.0)
        assert pair.vehicle.pose[0] == pytest.approx(open_to + 0.5, abs=0.03) and pair.vehicle.idle
    finally:
        pair.close()


@BOTH
def test_no_base_ends_where_nobody_may_stop_however_few_nodes_an_order_may_have(pair):
    pair.composer.layout = Layout(GridMap(np.ones((1, 30), np.uint8), 4, 1.0), no_stopping={(0, 3), (0, 4)})
    pair.composer.most = 4
    order = pair.send(pair.next(range(8)))
    assert [name for name, _, released in told(order) if released] == ["0_0", "0_1", "0_2"]
    pair.drive()
    order = pair.send(pair.next(range(2, 8)))
    assert [name for name, _, released in told(order) if released] == ["0_2", "0_3", "0_4", "0_5"]
    pair.drive()
    assert pair.state.last[0] == "0_5"
    pair.composer.layout = Layout(GridMap(np.ones((1, 30), np.uint8), 4, 1.0), no_stopping={(0, 8), (0, 9), (0, 10)})
    order = pair.send(pair.next(range(5, 12)))
    pair.drive()
    assert pair.state.last[0] == "0_7" and pair.next(range(7, 12)) == TOO_LONG
    pair.composer.most = 9
    pair.composer.size = 3  # it would reach into the zone one tile earlier, and later
    order = pair.send(pair.next(range(7, 13)))
    assert [name for name, _, released in told(order) if released][-1] == "0_12"
