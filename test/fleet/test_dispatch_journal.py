"""Nothing is lost and nothing done twice, whatever ends the dispatcher and its robots, and wherever its file is cut."""

import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gpu_planners.errors import GridMapError, SettingsError, TaskError
from gpu_planners.fleet import Dispatcher, DispatchSettings, FleetPlanner, Task, TaskStatus
from gpu_planners.fleet.dispatch.task import content_of
from gpu_planners.grid import GridMap

GRID = GridMap(np.ones((6, 8), np.uint8), 4)
FLEET = FleetPlanner(GRID, "four", "cpu")
TILES = st.tuples(st.integers(0, 5), st.integers(0, 7))
OPEN = (TaskStatus.WAITING, TaskStatus.ASSIGNED, TaskStatus.BEGUN)


def shown(dispatcher):
    """All that a dispatcher knows of its tasks."""
    return {
        id: (content_of(state.task), state.status, state.robot, state.errand, state.history)
        for id, state in dispatcher.states().items()
        if state.kind == "task"
    }


def work(path, seed=0):
    """Let a dispatcher work -> what it knew after each call, and how long its file was then"""
    rng, known = np.random.default_rng(seed), []
    dispatcher = Dispatcher(FLEET, journal=path)
    places = {"a": [0, 0], "b": [5, 7]}

    def note():
        known.append((os.path.getsize(path), shown(dispatcher)))

    note()
    for step in range(6):
        for _ in range(int(rng.integers(0, 3))):
            dispatcher.submit(Task(rng.integers(0, 6, (2, 2)), int(rng.integers(0, 3)), due=float(step + 30)))
            note()
        goals = dispatcher.assign(list(places), list(places.values()), now=float(step))
        note()
        places = {name: goal.tolist() if goal[0] >= 0 else places[name] for name, goal in zip(places, goals)}
        ids = [id for id, state in dispatcher.states().items() if state.status in OPEN]
        if step == 2:
            dispatcher.cancel(ids[0])
        if step == 3:
            dispatcher.remove("a", why="on fire")
            del places["a"]
        if step == 4:
            dispatcher.reprioritise(ids[-1], 7)
        note()
    dispatcher.close()
    return known


def test_a_file_that_is_cut_at_any_byte_is_what_was_known_then(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # thousands of files
    known = work(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    assert len(content) == known[-1][0] and len({size for size, _ in known}) > 10
    cut = tmp_path / "cut"
    for size in range(known[0][0], len(content) + 1):
        cut.write_bytes(content[:size])
        dispatcher = Dispatcher(FLEET, journal=cut)
        assert shown(dispatcher) == [states for known_size, states in known if known_size <= size][-1]
        dispatcher.close()
    for size in range(known[0][0]):  # of the first line alone nothing was told anybody
        cut.write_bytes(content[:size])
        dispatcher = Dispatcher(FLEET, journal=cut)
        assert shown(dispatcher) == {}
        dispatcher.close()


def test_rubbish_at_the_end_is_cut_off_and_damage_before_it_is_named(tmp_path):
    known, path = work(tmp_path / "j"), tmp_path / "j"
    content = path.read_bytes()
    for rubbish in (b"\0" * 5000, b"12345678 {", b"zz\n"):
        path.write_bytes(content + rubbish)
        dispatcher = Dispatcher(FLEET, journal=path)
        assert shown(dispatcher) == known[-1][1]
        dispatcher.submit(Task([[0, 0]]))
        dispatcher.close()
        dispatcher = Dispatcher(FLEET, journal=path)
        assert len(shown(dispatcher)) == len(known[-1][1]) + 1
        dispatcher.close()
    lines = content.split(b"\n")
    lines[4] = lines[4][:-3] + b"999"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(SettingsError, match="line 5, is damaged"):
        Dispatcher(FLEET, journal=path)
    assert path.read_bytes() == b"\n".join(lines)


def test_files_of_others_are_refused_by_name(tmp_path):
    path = tmp_path / "j"
    first = Dispatcher(FLEET, journal=path)
    with pytest.raises(SettingsError, match="in use"):
        Dispatcher(FLEET, journal=path)
    first.close()
    with pytest.raises(SettingsError, match="another map"):
        Dispatcher(FLEET, journal=path, frame=["hall 2"])
    with pytest.raises(SettingsError, match="cannot be opened|cannot be read|cannot be written"):
        Dispatcher(FLEET, journal=tmp_path)
    Dispatcher(FLEET, journal=path).close()


def test_a_full_disk_takes_no_task_and_goes_on_when_there_is_room(tmp_path, monkeypatch):
    dispatcher = Dispatcher(FLEET, journal=tmp_path / "j")
    first = dispatcher.submit(Task([[0, 3]]))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SettingsError, match="No space left"):
        dispatcher.submit(Task([[1, 1]]))
    with pytest.raises(SettingsError, match="No space left"):
        dispatcher.assign(["a"], [[0, 0]])
    monkeypatch.undo()
    assert set(dispatcher.states()) == {first}
    assert dispatcher.assign(["a"], [[0, 0]]).tolist() == [[0, 3]]
    before = shown(dispatcher)
    dispatcher.close()
    again = Dispatcher(FLEET, journal=tmp_path / "j")
    assert shown(again) == before
    again.close()


def test_a_journal_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu_planners.fleet.dispatch.journal.LEAST_BYTES", 3000)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path = tmp_path / "j"
    dispatcher = Dispatcher(FLEET, DispatchSettings(keep_ended=5), journal=path)
    place, most = [0, 0], 0
    for step in range(250):
        dispatcher.submit(Task([[step % 6, step % 8]]))
        place = dispatcher.assign(["a"], [place], now=float(step))[0].tolist()
        most = max(most, path.stat().st_size)
    assert most < 15_000 and len(dispatcher.states()) <= 7
    before = shown(dispatcher)
    dispatcher.close()
    dispatcher = Dispatcher(FLEET, DispatchSettings(keep_ended=5), journal=path)
    assert shown(dispatcher) == before
    assert json.loads(path.read_bytes().split(b"\n")[0].partition(b" ")[2])["format"] == 1
    dispatcher.close()


def test_what_cannot_be_is_refused_and_named():
    dispatcher = Dispatcher(FLEET)
    for errands, error, text in (
        ([[0, 99]], GridMapError, "outside"),
        ([], SettingsError, "0 rows"),
        ([[0.5, 1]], GridMapError, "whole"),
    ):
        with pytest.raises(error, match=text):
            dispatcher.submit(Task(errands))
    with pytest.raises(SettingsError, match="robots"):
        Task([[0, 0]], robots="abc")
    id = dispatcher.submit(Task([[0, 0]]), "one")
    assert dispatcher.submit(Task([[0, 0]]), "one") == id and len(dispatcher.states()) == 1
    with pytest.raises(TaskError, match="already"):
        dispatcher.submit(Task([[0, 1]]), "one")
    with pytest.raises(TaskError, match="no task 'two'"):
        dispatcher.cancel("two")
    dispatcher.cancel("one")
    with pytest.raises(TaskError, match="CANCELLED"):
        dispatcher.cancel("one")
    with pytest.raises(SettingsError, match="twice"):
        dispatcher.assign(["a", "a"], [[0, 0], [0, 1]])
    blocked = FleetPlanner(GRID.changed([2], [2], [0]), "four", "cpu")
    dispatcher = Dispatcher(blocked)
    with pytest.raises(GridMapError, match="blocked"):
        dispatcher.submit(Task([[2, 2]]))
    waits = dispatcher.submit(Task([[2, 2]]), even_blocked=True)
    assert dispatcher.assign(["a"], [[0, 0]]).tolist() == [[-1, -1]]
    blocked.update([2], [2], [1])
    assert dispatcher.assign(["a"], [[0, 0]]).tolist() == [[2, 2]] and dispatcher.holders() == {"a": waits}


class Lives(RuleBasedStateMachine):
    """Robots die, come back and fall silent, tasks are cancelled, the dispatcher is killed at any byte of its last
    write; each task that was taken is done exactly once, or cancelled."""

    @initialize(tmp=st.integers(0, 2**60))
    def begin(self, tmp):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "journal")
        self.dispatcher = Dispatcher(FLEET, DispatchSettings(keep_ended=10**6), journal=self.path)
        self.tasks, self.cancelled, self.carried = {}, set(), {}
        self.places = {0: (0, 0), 1: (5, 7), 2: (3, 3)}
        self.goals, self.done = {}, {}

    @rule(
        errands=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=3), p=st.integers(0, 2)
    )
    def submit(self, errands, p):
        id = self.dispatcher.submit(Task(errands, p))
        assert id not in self.tasks
        self.tasks[id] = errands

    @rule(data=st.data(), silent=st.sets(st.integers(0, 2), max_size=2))
    def step(self, data, silent):
        names = [name for name in self.places if name not in silent]
        goals = self.dispatcher.assign(names, [self.places[name] for name in names])
        self.goals = {name: tuple(goal.tolist()) for name, goal in zip(names, goals)}
        for name, goal in self.goals.items():
            if goal[0] >= 0 and data.draw(st.booleans()):
                self.places[name] = goal

    @rule(name=st.integers(0, 2))
    def die(self, name):
        self.dispatcher.remove(name)
        self.goals.pop(name, None)
        assert name not in self.dispatcher.holders()

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), p=st.integers(-3, 3))
    def change(self, data, p):
        id = data.draw(st.sampled_from(sorted(self.tasks)))
        if self.dispatcher.state(id).status in OPEN:
            self.dispatcher.reprioritise(id, p)
            if data.draw(st.booleans()):
                self.dispatcher.cancel(id)
                self.cancelled.add(id)

    @rule(torn=st.integers(0, 100))
    def restart(self, torn):
        """It is killed in the middle of a write that nobody was told of."""
        before = shown(self.dispatcher)
        self.dispatcher.close()
        with open(self.path, "ab") as file:
            file.write(b'12345678 [[1.0,"errand",1,0,null]]\n'[:torn][:-1])
        self.dispatcher = Dispatcher(FLEET, DispatchSettings(keep_ended=10**6), journal=self.path)
        assert shown(self.dispatcher) == before
        self.goals = {}

    @invariant()
    def nothing_is_lost_or_done_twice(self):
        if not hasattr(self, "dispatcher"):
            return
        states = shown(self.dispatcher)
        assert set(states) == set(self.tasks)
        robots = [robot for _, status, robot, *_ in states.values() if status in OPEN and robot is not None]
        assert len(set(robots)) == len(robots)
        for id, (task, status, _, errand, history) in states.items():
            assert [tuple(tile) for tile in task["errands"]] == self.tasks[id]
            assert (status == TaskStatus.CANCELLED) == (id in self.cancelled)
            reached = []
            for event in history:  # since it began last, its errands were reached one after the other by one robot
                reached = [] if event.what == "returned" else reached
                reached += [(event.robot, event.detail)] if event.what == "errand" else []
            assert [k for _, k in reached] == list(range(1, errand + 1)) and len({r for r, _ in reached}) <= 1
            assert (status == TaskStatus.DONE) == (errand == len(self.tasks[id]))
            if status == TaskStatus.DONE:
                assert self.done.setdefault(id, history) == history
        assert set(self.done) <= set(states)

    def teardown(self):
        if hasattr(self, "dispatcher"):
            for _ in range(12 * (1 + len(self.tasks))):
                names = list(self.places)
                goals = self.dispatcher.assign(names, list(self.places.values()))
                self.places = {n: tuple(g.tolist()) if g[0] >= 0 else self.places[n] for n, g in zip(names, goals)}
            ends = {state.status for state in self.dispatcher.states().values()}
            assert ends <= {TaskStatus.DONE, TaskStatus.CANCELLED}
            self.dispatcher.close()
            self.folder.cleanup()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_all_tasks_count_as_changed_after_any_number_of_restarts(tmp_path):
    dispatcher = Dispatcher(FLEET, journal=tmp_path / "journal")
    ids = [dispatcher.submit(Task([[1, 1]])) for _ in range(3)]
    dispatcher.cancel(ids[0])
    for _ in range(3):
        dispatcher.close()
        dispatcher = Dispatcher(FLEET, journal=tmp_path / "journal")
        last, states = dispatcher.changed()
        assert {state.id for state in states} == set(ids) and dispatcher.changed(last) == (last, [])
        dispatcher.reprioritise(ids[1], 4)
        assert [state.id for state in dispatcher.changed(last)[1]] == [ids[1]]
    dispatcher.close()


def test_a_closed_dispatcher_takes_nothing_that_it_cannot_keep(tmp_path):
    dispatcher = Dispatcher(FLEET, journal=tmp_path / "journal")
    dispatcher.submit(Task([[1, 1]]), "a")
    dispatcher.close()
    dispatcher.close()
    with pytest.raises(SettingsError, match="is closed"):
        dispatcher.submit(Task([[1, 1]]), "b")
    assert list(dispatcher.states()) == ["a"]


DEEP = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize("value", [np.nan, [np.inf], DEEP, {1}, np.arange(2), [10**5000], object()])
def test_what_json_does_not_have_is_refused_wherever_it_would_be_kept(value):
    with pytest.raises(SettingsError, match="details: .*allowed: what JSON has"):
        Task([[1, 1]], details=value)
    with pytest.raises(SettingsError, match="frame: .*allowed: what JSON has"):
        Dispatcher(FLEET, frame=value)


@pytest.mark.parametrize("id", [1 << 63, "", "park:a", "charge:7"])
def test_names_that_cannot_be_a_tasks_are_refused(id):
    with pytest.raises(SettingsError, match="id.* allowed:"):
        Dispatcher(FLEET).submit(Task([[1, 1]]), id)
