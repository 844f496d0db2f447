"""Fleet control: vehicles that speak VDA 5050, the planner of a fleet behind them.

What vehicles report goes to a RunningFleet, as from any other robots; what that allows each of them becomes its order.
One thread does all of it, in `poll`; the broker's own thread only puts messages into a queue.
"""

import json
import math
import time
from collections.abc import Iterable, Sequence
from threading import Event
from typing import Any

import numpy as np

from ..errors import GpuPlannersError, SettingsError, error_text, one_line, shown
from ..fleet.arguments import MOST_SIZE
from ..fleet.dispatch import Task
from ..fleet.execution.doors import Doors
from ..fleet.execution.dynamics import Dynamics
from ..fleet.execution.running import RunningFleet
from ..fleet.execution.tasks import FleetTasks
from .broker import Address, Arrived, Broker
from .charging import Charging
from .errands import ACTING, Errand, ErrandError, Errands, errand_of, needs_of, whole_priority
from .layout import Layout, Tile
from .messages import MessageError, check_header, checked, opened, read_connection, read_factsheet, read_state
from .orders import Composer
from .settings import FleetRules, Speaking
from .telling import Telling
from .vehicle import DRIVEN, KEEPS_ORDER, Vehicle
from .versions import VERSIONS
from .zones import ZoneSet, with_zones

POLLS = 20  # in the time of a step
LEAST_S, MOST_S = 0.005, 0.05  # between two polls
TOPICS = ("connection", "state", "factsheet")
LOOK_S = 0.2  # between two looks at what each vehicle has not answered
MOST_FAULTS = 100  # bad messages whose texts are kept
FASTEST = 2.0  # tiles in the time of a step (fleet/execution/reports.py)


class FleetControl:
    """A fleet of vehicles behind a broker.

    layout: what they drive on; rules: of the fleet and its tasks; speaking: of messages; versions: of "2.1" and "3.0"
    zones: a zoneSet of 3.0, as its topic has it; doors: {doorId: tiles}, closed until a message says otherwise

    vehicles: {id: Vehicle}; faults: {who or what: text} what is wrong now, refused messages among them
    counts: how many messages were taken, refused, old
    """

    def __init__(
        self,
        layout: Layout,
        address: Address,
        rules: FleetRules,
        speaking: Speaking,
        versions: Sequence[str] = tuple(VERSIONS),
        zones: dict[str, Any] | None = None,
        doors: dict[str, list[Tile]] | None = None,
    ) -> None:
        self.rules, self.speaking = rules, speaking
        self.layout = self._base = layout
        self.vehicles: dict[str, Vehicle] = {}
        self.faults: dict[str, str] = {}
        self.counts = dict.fromkeys(("taken", "refused", "old"), 0)
        self.fleet = RunningFleet(rules)
        self.tasks = FleetTasks(self.fleet, rules)
        self.errands = Errands(self.tasks)
        self._done: set[str] = set()  # vehicles that have done all there is to do at their stop
        self._fit: dict[Any, set[str]] = {}  # by what a task needs, vehicles that can do it
        self._began, self._all_told_at = time.monotonic(), -math.inf
        self._told, self._last_status = -math.inf, b""
        self._levels = {}
        for name in versions:
            if name not in VERSIONS:
                raise SettingsError(f"version is {shown(name)}; allowed: {', '.join(VERSIONS)}")
            version = VERSIONS[name]
            self._levels[speaking.interface or version.interface, f"v{version.major}"] = version
        self._fresh = Event()  # the broker is there again
        topics = [(f"{one}/{major}/+/+/{topic}", 1) for one, major in self._levels for topic in TOPICS]
        topics.append((f"{speaking.topic}/errands", 1))
        self.broker = Broker(address, f"{speaking.topic}-control", topics, connected=self._fresh.set, lasting=True)
        self.telling = Telling(self.broker, self.fleet, self.errands, speaking, rules.silent_after_s)
        self.charging = Charging(self.tasks, self.fleet, self.telling, speaking.answer_s)
        self.take_zones(zones)
        if doors:
            self.fleet.doors = Doors({name: np.array(tiles) for name, tiles in doors.items()}, layout.grid.shape)
        try:
            self.errands.load()
        except GpuPlannersError:
            self.tasks.close()
            raise
        self.broker.start()

    def close(self) -> None:
        self.broker.close()
        self.tasks.close()

    # ---- the map ----

    def take_zones(self, zones: dict[str, Any] | None) -> None:
        """Go by this zone set from now on; None: by none. Raises LayoutError or MessageError; nothing changes then."""
        found: ZoneSet | None = None
        layout = self._base
        if zones is not None:
            found, layout = with_zones(zones, self._base)
        self.fleet.take_map(layout.grid, layout.lanes(), layout.zones())
        self.layout, self.telling.zones = layout, found
        for vehicle in self.vehicles.values():
            vehicle.composer.layout = layout

    # ---- one round ----

    def run(self, stop: Event) -> None:
        period = float(np.clip(self.rules.step_s / POLLS, LEAST_S, MOST_S))
        while not stop.wait(period):
            try:
                self.poll()
                self.faults.pop("control", None)
            except Exception as error:  # whatever it is, the next round may be right
                self.faults["control"] = f"a round was not ended: {error_text(error)}"

    def poll(self) -> None:
        """Take what has arrived, move the fleet if that is due, and tell vehicles what is new for them."""
        now = time.monotonic()
        if self._fresh.is_set():
            self._fresh.clear()
            for vehicle in self.vehicles.values():
                self.telling.ask(vehicle, "stateRequest", now)
        heard: set[str] = set()
        for _ in range(self.broker.arrived.qsize()):  # what comes meanwhile is next
            self._take(self.broker.arrived.get(), now, heard)
        self._report(heard, now)
        self._follow_errands(now)
        step = None
        try:
            due = self._all_told(now) and self.fleet.due(now)
            if due:
                self._assign(now)
            step = self.fleet.step(now) if due else self.fleet.news(now)
            if step is not None and due:
                self.fleet.give_out(time.monotonic())
            self.faults.pop("step", None)
        except Exception as error:  # whatever it is, vehicles stand, and the next step may be right
            self.fleet.began = now
            self.faults["step"] = f"a step was not planned, all vehicles stand: {error_text(error)}"
        all_of_them = step is not None or now - self._all_told_at > LOOK_S
        if self.broker.up:
            silent = set(self.fleet.silent_ids())
            for id in self.vehicles if all_of_them else heard:
                self.telling.tell(self.vehicles[id], time.monotonic(), id in silent)
            self._all_told_at = now if all_of_them else self._all_told_at
            self._publish_status(now)

    def _all_told(self, now):
        """Before anybody moves: has everybody told where it is, who is there?"""
        if self.fleet.steps:
            return True
        missing = [id for id, one in self.vehicles.items() if one.connection == "ONLINE" and one.state is None]
        return not missing or now - self._began > self.rules.silent_after_s

    # ---- what arrives ----

    def _take(self, arrived: Arrived, now: float, heard: set[str]) -> None:
        levels = arrived.topic.split("/")
        if arrived.topic == f"{self.speaking.topic}/errands":
            self._take_errands(arrived.payload, now)
            return
        what = levels[-1]
        who = "/".join(levels[2:4])
        try:
            version = self._levels[levels[0], levels[1]]
            message = opened(arrived.payload)
            check_header(message, version, *levels[2:4])
            vehicle = self._vehicle(who, version, "/".join(levels[:4]), now)
            if what == "connection":
                vehicle.connection = read_connection(message, version)
            elif what == "factsheet":
                vehicle.factsheet = read_factsheet(message, version)
                self._fit.clear()
                self._judge(vehicle)
            elif arrived.retained:  # nobody knows how old it is
                self.counts["old"] += 1
            else:
                state = read_state(message, version)
                if vehicle.is_newer(state, now, self.rules.silent_after_s):
                    vehicle.hear(state, now)
                    heard.add(vehicle.id)
                else:
                    self.counts["old"] += 1
            self.counts["taken"] += 1
            self.faults.pop(f"{who} {what}", None)
        except Exception as error:  # whatever it is, other vehicles go on
            self.counts["refused"] += 1
            if len(self.faults) < MOST_FAULTS or f"{who} {what}" in self.faults:
                told = error_text(error)
                self.faults[f"{who} {what}"] = one_line(f"a message of {who} on {what} was refused: {told}")

    def _vehicle(self, id, version, level, now):
        known = self.vehicles.get(id)
        if known is None or known.version != version:
            if known is None and len(self.vehicles) >= self.rules.max_agents:
                raise MessageError(f"there are {len(self.vehicles)} vehicles; allowed: {self.rules.max_agents}")
            tolerance = self.rules.tolerance * self.layout.grid.resolution
            composer = Composer(version, self.layout, tolerance, self.speaking.most_nodes, self.rules.fleet.size)
            known = self.vehicles[id] = Vehicle(id, version, level, composer)
            self._fit.clear()
            self.telling.ask(known, "factsheetRequest", now)
            self.telling.ask(known, "stateRequest", now)
        return known

    def _judge(self, vehicle):
        """How many tiles does a vehicle cover, and how fast is it?"""
        sheet, size, resolution = vehicle.factsheet, self.rules.fleet.size, self.layout.grid.resolution
        vehicle.composer.most = min(self.speaking.most_nodes, sheet.most_nodes or self.speaking.most_nodes)
        side = max(sheet.width, sheet.length, 0.0) / resolution + 2 * self.rules.clearance
        side = min(side, 3.0 * MOST_SIZE)  # of whatever it says, so much is too much
        vehicle.composer.size = size + 2 * max(0, math.ceil((side - size) / 2 - 1e-9))  # its node stays in its middle
        vehicle.faults.pop("size", None)
        if vehicle.composer.size > MOST_SIZE:
            vehicle.faults["size"] = (
                f"is {sheet.length:g} x {sheet.width:g} m, which takes {vehicle.composer.size} tiles of {resolution:g} "
                f"m with the clearance of {self.rules.clearance:g} tiles on each side; allowed: {MOST_SIZE}; it is not "
                "sent anywhere"
            )
        fastest = FASTEST * resolution / (self.rules.step_s * self.rules.fleet.ticks_per_move)
        vehicle.faults.pop("speed", None)
        if sheet.speed > fastest:
            vehicle.faults["speed"] = (
                f"drives up to {sheet.speed:g} m/s; places that it cannot have come to by {fastest:g} m/s are doubted: "
                "make step_s shorter"
            )
        if sheet.speed > 0:
            told = (rate if rate > 0 else math.inf for rate in (sheet.acceleration, sheet.deceleration))
            self.fleet.take_dynamics({vehicle.id: Dynamics(sheet.speed, *told)})

    # ---- what the fleet is told ----

    def _report(self, heard, now):
        """Tell the fleet where vehicles are that have sent a state."""
        ids, points, yaws, stamps, sizes, faults = [], [], [], [], [], {}
        for id in sorted(heard):
            vehicle = self.vehicles[id]
            state, told = vehicle.state, self.fleet.told(id)
            fault = self._place_fault(state)
            placed = state.pose[:2] if state.pose else self.layout.tile(state.last[0])
            point = None if fault else placed if state.pose else self.layout.point(placed)
            if state.mode not in KEEPS_ORDER:
                self._leave(vehicle, point, f"is in mode {state.mode}: people move it, others keep away from it")
                continue
            if vehicle.cancelling and state.idle:
                vehicle.cancelling = False
                if told is not None:
                    self.fleet.withdraw([id])
            if told is not None and state.base and point:
                off = np.abs(self.layout.grid.centres_of(told.tiles)[:, :2] - point).max(axis=1)
                if off.min() > self.layout.grid.resolution:
                    vehicle.cancelling = True  # before the fleet takes it to stand there
            if told is None and (state.base or state.horizon):
                vehicle.cancelling = True  # whatever drives it, it is not this fleet
                self._stand_aside(id, point)
                continue
            joined = self.fleet.size_of(id) if told is not None else vehicle.composer.size
            if "size" in vehicle.faults or joined != vehicle.composer.size:  # it comes again when it stands
                self._leave(vehicle, point, "")
                continue
            self.fleet.free([id])
            vehicle.faults.pop("mode", None)
            stops = state.paused or bool(state.stopped) or state.mode not in DRIVEN or vehicle.cancelling
            stops = stops or vehicle.acts(self.errands.of(id)) or self.charging.is_plugged(vehicle)
            (self.fleet.standing.add if stops else self.fleet.standing.discard)(id)
            vehicle.faults.pop("vehicle", None)
            if state.stopped:
                vehicle.faults["vehicle"] = f"stands: {state.stopped}"
            if fault:
                faults[id] = fault
            ids.append(id)
            points.append(point or (math.nan, math.nan))
            # a vehicle turns when it drives on: the fleet sees that it has turned when it has moved
            yaws.append(state.pose[2] if state.pose and told is None else math.nan)
            stamps.append(state.stamp)
            sizes.append(vehicle.composer.size)
        if ids:
            where = np.array(points, float), np.array(yaws, float)
            given = ids, *where, np.full(len(ids), now), faults, np.array(stamps)
            self.fleet.take_states(*given, np.array(sizes, np.int64))

    def _place_fault(self, state):
        if state.pose and not state.localised:
            return "it does not know where it is (it is not localised)"
        if state.pose and state.map_id != self.layout.map_id:
            return f"it is on map {state.map_id!r}; allowed: {self.layout.map_id!r}"
        if not state.pose and self.layout.tile(state.last[0]) is None:
            return f"it tells no position, and its last node {state.last[0]!r} is none of the layout"
        return ""

    def _leave(self, vehicle, point, why):
        """A vehicle is no agent of the fleet now; others keep away from where it is."""
        if why:
            vehicle.faults["mode"] = why
        self.fleet.remove([vehicle.id])
        self._stand_aside(vehicle.id, point)
        vehicle.pending, vehicle.cancelling = None, False
        if self.errands.of(vehicle.id) is not None:
            self.tasks.take_back(vehicle.id, why or "it is sent nowhere", time.time())
            self.errands.follow()

    def _stand_aside(self, id, point):
        if point is not None:
            self.fleet.take_occupied([id], np.array([point], float), {}, np.array([self.vehicles[id].composer.size]))

    # ---- errands ----

    def submit(self, errand: Errand) -> None:
        """Take an errand; one whose id is known already is passed over. Raises ErrandError."""
        for name in errand.vehicles:
            vehicle = self.vehicles.get(name)
            if vehicle is not None and (why := vehicle.unfit(needs_of(errand.task()))):
                raise ErrandError(f"errand {errand.id!r}: {vehicle.id} cannot do it: {why}")
        self.errands.take(errand, time.time())

    def cancel(self, id: str) -> None:
        """End an errand; whoever is under way for it stops. Raises ErrandError for one that is not there or over."""
        errand = self.errands.by_id.get(id)
        if errand is None or errand.over:
            raise ErrandError(f"errand {shown(id)} cannot be cancelled: it is {errand.state if errand else 'unknown'}")
        self._stop(errand)
        self.errands.end(errand, time.time())

    def _stop(self, errand):
        vehicle = self.vehicles.get(errand.vehicle)
        if vehicle is not None:
            vehicle.cancelling = True  # until a state says that it is idle
            self.fleet.send([vehicle.id], np.array([[-1, -1]]))

    def prioritize(self, given: dict[str, Any]) -> None:
        """Give an errand {errandId, priority} another priority. Raises GpuPlannersError."""
        checked(given, {"errandId": str, "priority": float})
        self.tasks.dispatcher().reprioritise(given["errandId"], whole_priority(given["priority"]), time.time())
        self.errands.follow()

    def ask(self, id: str, action: str) -> None:
        """Have a vehicle do an instant action: startPause, stopPause, stateRequest, factsheetRequest, cancelOrder.
        Raises ErrandError for a vehicle that is not known."""
        vehicle = self.vehicles.get(id)
        if vehicle is None:
            raise ErrandError(f"vehicle {shown(id)} is not known; allowed: {', '.join(self.vehicles) or 'none yet'}")
        if action == "cancelOrder":
            vehicle.cancelling = True
        else:
            self.telling.ask(vehicle, action, time.monotonic())

    def _take_errands(self, payload, now):
        """A message of whoever gives errands: errands, cancel, prioritize, pause, resume, zoneSets, doors."""
        faults = []
        try:
            message = opened(payload)
        except MessageError as error:
            self.faults["errands"] = f"a message on errands was refused: {error}"
            return
        for word, act in (
            ("errands", lambda one: self.submit(errand_of(one, self.layout))),
            ("cancel", self.cancel),
            ("prioritize", self.prioritize),
            ("pause", lambda one: self.ask(one, "startPause")),
            ("resume", lambda one: self.ask(one, "stopPause")),
            ("zoneSets", self.take_zones),
            ("doors", self._take_door),
        ):
            several = message.get(word, [])
            if not isinstance(several, list):
                faults.append(f"{word} is {shown(several)}; allowed: an array")
                continue
            for one in several:
                try:
                    act(one)
                except TypeError:
                    faults.append(f"{word} has {shown(one)}; allowed: texts")
                except Exception as error:  # whatever it is, the others are looked at
                    faults.append(error_text(error))
        self.faults.pop("errands", None)
        if faults:
            self.faults["errands"] = one_line("; ".join(faults))

    def _take_door(self, told):
        checked(told, {"doorId": str, "open": bool})
        self.fleet.tell_door(told["doorId"], told["open"])

    def _follow_errands(self, now):
        """Find out who has done what there is to do at its stop."""
        self._done.clear()
        for vehicle in self.vehicles.values():
            errand, state = self.errands.of(vehicle.id), vehicle.state
            if errand is None or state is None:
                continue
            told = self.fleet.told(vehicle.id)
            states = [state.actions.get(one["actionId"], ("", "")) for one in errand.actions]
            failed = [text for status, text in states if status == "FAILED"]
            if failed:
                self.fleet.send([vehicle.id], np.array([[-1, -1]]))
                why = f"{vehicle.id}: an action failed: {failed[0] or 'it says no more'}"
                self.errands.end(errand, time.time(), why)
            elif states and all(status == "FINISHED" for status, _ in states):
                self._done.add(vehicle.id)
            elif any(status not in ("", "WAITING") for status, _ in states):
                errand.state, errand.text = ACTING, ""
            elif not states and told is not None and told.reached and tuple(told.goal.tolist()) == errand.goal:
                self._done.add(vehicle.id)
            else:
                errand.text = self.fleet.goal_faults.get(vehicle.id, "")

    def _assign(self, now):
        """Have the dispatcher give errands to vehicles, and send these where their errands are.

        A vehicle that is lost loses an errand that it has not begun, and after `dead_after_s` any other. One that
        cannot drive just now, or has the actions of its stop in its order already, keeps what it has."""
        crew, keeping, silent = [], [], set(self.fleet.silent_ids())
        for id, vehicle in self.vehicles.items():
            state, errand = vehicle.state, self.errands.of(id)
            if state is None or self.fleet.told(id) is None:
                continue
            there = vehicle.reachable and id not in silent
            able = there and not vehicle.cancelling and state.mode in DRIVEN and not state.stopped
            bound = errand is not None and vehicle.is_bound(errand)
            if able or (errand is not None and (there or bound)):
                crew.append(id)
                self.tasks.batteries[id] = min(max(state.charge / 100.0, 0.0), 1.0)
                if bound or not able:
                    keeping.append(id)
        self.tasks.give(now, time.time(), crew, keeping, self._done, self._able)
        self.errands.follow()
        self.charging.follow(self.vehicles, now)

    def _able(self, task: Task) -> set[str] | None:
        """Vehicles that can do what a task needs; None: any"""
        needs = needs_of(task)
        if not any(needs):
            return None
        if needs not in self._fit:
            self._fit[needs] = {id for id, vehicle in self.vehicles.items() if not vehicle.unfit(needs)}
        return self._fit[needs]

    # ---- what is said of the fleet ----

    def status(self) -> dict[str, Any]:
        """Vehicles, errands that are not over or were so lately, and what is wrong, as JSON has it."""
        return {
            "vehicles": {
                id: vehicle.told(errand.id if (errand := self.errands.of(id)) else self.charging.stays.get(id, ""))
                for id, vehicle in self.vehicles.items()
            },
            "errands": {id: errand.told(self.layout) for id, errand in self.errands.by_id.items()},
            "doors": self._doors(),
            "faults": [*self.all_faults()],
            "counts": self.counts | {"orders": self.telling.orders},
        }

    def _doors(self):
        """{doorId: is it asked to be open, is it open?}"""
        doors, wanted = self.fleet.doors, set(self.fleet.wanted_doors())
        return {name: {"wanted": name in wanted, "open": name in doors.open} for name in (doors.tiles if doors else ())}

    def all_faults(self) -> Iterable[str]:
        yield from self.faults.values()
        fleet = self.fleet
        for told in (fleet.clashes, fleet.faults, fleet.goal_faults):
            yield from told.values()
        for vehicle in self.vehicles.values():
            yield from (f"{vehicle.id} {text}" for text in vehicle.faults.values())
        if self.fleet.state_fault:
            yield self.fleet.state_fault

    def _publish_status(self, now):
        if now - self._told < self.speaking.status_s:
            return
        self._told = now
        status = json.dumps(self.status()).encode()
        if status != self._last_status and self.broker.send(f"{self.speaking.topic}/status", status, 1, retain=True):
            self._last_status = status
