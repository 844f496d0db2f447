"""The bond with a lifecycle manager, without DDS, and with bond_core's own Python end where that is installed."""

import sys
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gpu_planners.nodes.common import bond
from gpu_planners.nodes.common.bond import ALIVE, DEAD, DYING, WAITING, Bond


class Line:
    """A topic without DDS, and a clock that the test turns: messages wait until they are delivered."""

    def __init__(self, monkeypatch):
        self.now, self.waiting, self.ends, self.lost = 100.0, [], [], 0
        self.sent = 0
        status = SimpleNamespace(Status=lambda **fields: SimpleNamespace(**fields))
        monkeypatch.setitem(sys.modules, "bond", SimpleNamespace(msg=status))
        monkeypatch.setitem(sys.modules, "bond.msg", status)
        monkeypatch.setattr(bond, "time", SimpleNamespace(monotonic=lambda: self.now))

    def join(self, name="planner_server"):
        return End(self, name)

    def deliver(self):
        while self.waiting:
            message = self.waiting.pop(0)
            for hear in self.ends:
                hear(message)

    def tick(self, seconds, *ends):
        for _ in range(round(seconds / bond.PERIOD_S)):
            self.now += bond.PERIOD_S
            for end in ends:
                if end.runs:
                    end.beat()
            self.deliver()


class End:
    """A node as a Bond sees it."""

    def __init__(self, line, name):
        self.line, self.name, self.runs, self.told = line, name, False, []
        self.bond = Bond(self)

    def get_name(self):
        return self.name

    def create_publisher(self, kind, topic, depth):
        assert topic == "bond"

        def publish(message):
            self.told.append(message.active)
            self.line.waiting.append(message)

        return SimpleNamespace(publish=publish)

    def create_subscription(self, kind, topic, hear, depth):
        self.line.ends.append(hear)

    def create_timer(self, period, beat, clock):
        self.beat = beat
        return SimpleNamespace(cancel=lambda: setattr(self, "runs", False), reset=lambda: setattr(self, "runs", True))


@pytest.fixture
def line(monkeypatch):
    return Line(monkeypatch)


def test_two_ends_live_and_die_together(line):
    one, other = line.join(), line.join()
    stranger = line.join("controller_server")
    assert one.bond.state == DEAD and not one.told
    one.bond.form()
    line.deliver()
    assert one.bond.state == WAITING and other.bond.state == DEAD
    other.bond.form()
    line.deliver()
    assert one.bond.state == ALIVE
    line.tick(20.0, one, other)
    assert one.bond.state == other.bond.state == ALIVE and stranger.bond.state == DEAD
    assert one.told[-190:] == [True] * 190
    one.bond.end()
    assert one.bond.state == DYING
    line.deliver()
    assert one.bond.state == other.bond.state == DEAD and not one.runs and not other.runs
    assert (one.told[-1], other.told[-1]) == (False, False)
    for end in (one, other):
        end.bond.form()  # the node is activated anew
    line.deliver()
    assert one.bond.state == other.bond.state == ALIVE


def test_nobody_there(line):
    end = line.join()
    end.bond.form()
    line.tick(bond.CONNECT_S - 1, end)
    assert end.bond.state == WAITING and end.runs
    line.tick(2.0, end)
    assert end.bond.state == DEAD and not end.runs


def test_an_end_that_falls_silent_breaks_nothing_and_is_not_waited_for(line):
    end, gone = line.join(), line.join()
    end.bond.form()
    gone.bond.form()
    line.deliver()
    line.ends.pop()
    line.tick(60.0, end)
    assert end.bond.state == ALIVE  # as of Nav2's nodes: the manager is not the one who is watched
    end.bond.end()
    line.tick(bond.DISCONNECT_S - 0.5, end)
    assert end.bond.state == DYING and end.told[-1] is False
    line.tick(1.0, end)
    assert end.bond.state == DEAD and not end.runs


def test_a_death_is_agreed_to_each_time(line):
    """bond_core repeats it twenty times a second until it hears that."""
    end, other = line.join(), line.join()
    end.bond.form()
    other.bond.form()
    line.deliver()
    dead = SimpleNamespace(id="planner_server", instance_id="other", active=False)
    for _ in range(3):
        before = len(end.told)
        line.ends[0](dead)
        assert end.bond.state == DEAD and end.told[before:] == [False]
    line.waiting.clear()
    end.bond.form()
    line.ends[0](line.waiting[-1])
    assert end.bond.state == WAITING  # what it says itself does not count


def test_without_the_package_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "bond.msg", None)
    end = Bond(SimpleNamespace(get_name=lambda: "planner_server"))
    end.form()
    end.end()
    assert end.state == DEAD and "bond is not installed" in end.missing and "bond_timeout 0.0" in end.missing


@pytest.fixture
def managed():
    from grid_harness import RunningNode

    running = RunningNode(None, lifecycle=True)
    yield running
    running.close()


def test_bondpy_sees_a_node_live_and_be_deactivated(managed):
    """bond_core's own state machine on the other end, as in a lifecycle manager."""
    pytest.importorskip("bond.msg", reason="the ROS package bond is not installed")
    bondpy = pytest.importorskip("bondpy.bondpy", reason="the ROS package bondpy is not installed")
    from lifecycle_msgs.srv import ChangeState

    events, node = [], managed.client_node
    change = node.create_client(ChangeState, "/grid_planner/change_state")
    assert change.wait_for_service(10)

    def make(label):
        request = ChangeState.Request()
        request.transition.label = label
        return managed.call(change, request).success

    def other_end():
        end = bondpy.Bond(
            node,
            "bond",
            "grid_planner",
            on_broken=lambda: events.append("broken"),
            on_formed=lambda: events.append("formed"),
        )
        end.heartbeat_timeout, end.heartbeat_period = 4.0, 0.1
        end.start()
        return end

    assert make("configure")
    for _ in range(2):
        assert make("activate")
        events.clear()
        end = other_end()
        managed.wait_until(lambda: events == ["formed"])
        until = time.monotonic() + 5.0  # longer than the other end's patience
        managed.wait_until(lambda until=until: time.monotonic() > until)
        assert events == ["formed"] and not end.is_broken()
        assert make("deactivate")
        managed.wait_until(lambda: events == ["formed", "broken"])
    assert make("activate")
    end = other_end()
    managed.wait_until(lambda: events[-1] == "formed")
    end.break_bond()  # the manager lets go: the node agrees, and goes on
    managed.wait_until(lambda: events[-1] == "broken")
    assert managed.facts["lifecycle"] == "active"


@pytest.mark.slow
def test_nav2s_lifecycle_manager_keeps_a_bond(tmp_path):
    """The real manager activates the node with its default bond_timeout, and sees when it has gone."""
    import os
    import subprocess
    from pathlib import Path

    import yaml
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    from grid_harness import RunningNode

    pytest.importorskip("bond.msg", reason="the ROS package bond is not installed")
    try:
        program = Path(get_package_prefix("nav2_lifecycle_manager"), "lib/nav2_lifecycle_manager/lifecycle_manager")
    except PackageNotFoundError:
        pytest.skip("the ROS package nav2_lifecycle_manager is not installed")
    given = {"autostart": True, "bond_timeout": 4.0, "node_names": ["grid_planner"]}
    (tmp_path / "manager.yaml").write_text(yaml.safe_dump({"manager": {"ros__parameters": given}}))
    running, log = RunningNode(None, lifecycle=True), tmp_path / "log"
    command = [program, "--ros-args", "-r", "__node:=manager", "--params-file", tmp_path / "manager.yaml"]
    domain = {"ROS_DOMAIN_ID": str(running.context.get_domain_id())}
    with log.open("w") as file:
        manager = subprocess.Popen(command, env=os.environ | domain, stdout=file, stderr=subprocess.STDOUT)
    try:
        running.wait_until(lambda: "Server grid_planner connected with bond" in log.read_text(), 60)
        running.wait_until(lambda: "Managed nodes are active" in log.read_text(), 60)
        running.wait_until(lambda: running.facts["lifecycle"] == "active", 60)
        until = time.monotonic() + 6.0  # longer than bond_timeout
        running.wait_until(lambda: time.monotonic() > until)
        assert "CRITICAL FAILURE" not in log.read_text()
        running._executors[0].shutdown(timeout_sec=5)  # the node dies
        until = time.monotonic() + 30.0
        while "CRITICAL FAILURE: SERVER grid_planner IS DOWN" not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
    finally:
        manager.kill()
        manager.wait(30)
        running.close()
