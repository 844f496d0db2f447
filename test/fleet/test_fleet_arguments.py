"""What a fleet cannot take is refused: what, its value, what is allowed; and nothing has changed."""

import numpy as np
import pytest

from gpu_planners.errors import DeviceError, GridMapError, SettingsError
from gpu_planners.fleet import Guidance, Settings, conflicts, learn_guidance
from gpu_planners.grid import FleetPlanner, GridMap

NAN, INF, HUGE = float("nan"), float("inf"), 2.0**40
FREE = np.ones((4, 5), bool)
FREE[1, 1] = False
AT = [[0, 0], [3, 3], [2, 2], [3, 0]]
GOALS = [[0, 1], [0, 2], [0, 3], [0, 4]]
STILL = np.zeros((2, 2, 2), int)  # two agents
COSTS = np.ones((2, 2, 4), int)


def fleet(**settings):
    """Four agents on FREE, of which number 3 was removed."""
    planner = FleetPlanner(GridMap(FREE, connectivity=4), "turning", "cpu", Settings(**settings))
    planner.start(AT, [1, 2, 3, 0])
    planner.remove([3])
    return planner


def first_goal(*tile):
    return [tile, *GOALS[1:]]


def solve(*arguments, **more):
    return lambda f: f.solve(*arguments, **{"time_limit_s": 0.05} | more)


def observe(still=(), positions=AT, headings=None):
    return lambda f: f.observe(positions, headings, still)


def step(goals=GOALS, budget_s=0.0):
    return lambda f: f.step(goals, budget_s)


def moved(**more):
    return lambda f: conflicts(**{"positions": STILL} | more)


def guidance(*arguments):
    return lambda f: Guidance(*arguments)


def learn(agents=2, **more):
    return lambda f: learn_guidance(GridMap(FREE), agents, **{"device": "cpu", "rounds": 1, "steps": 1} | more)


def plan_of_one(agent):
    return lambda f: f.solve([[0, 0]], [[0, 1]], 0.05).text(agent)


TILES = "whole numbers .row, col. from -2147483647 to 2147483647"
REFUSED = {
    # who stands: (K,) numbers of agents on the map
    "still of two axes": (observe([[0, 1], [2, 0]]), GridMapError, r"still is int64 \(2, 2\); allowed: integers"),
    "still a number": (observe(1), GridMapError, r"still is int64 \(\); allowed: integers \(K,\)"),
    "still a mask": (observe([True, False, False, False]), GridMapError, r"still is bool \(4,\); allowed: integers"),
    "still halves": (observe([0.5]), GridMapError, r"still is float64 \(1,\); allowed: integers"),
    "still none": (observe(None), GridMapError, "still has the type object; allowed: numbers"),
    "still a text": (observe("no"), GridMapError, "still has the type <U2; allowed: numbers"),
    "still ragged": (observe([[0], [1, 2]]), GridMapError, "still is no array of numbers"),
    "still nobody's": (observe([0, 4]), GridMapError, r"still\[1\] is 4; allowed: whole numbers 0 .. 3"),
    "still negative": (observe([-1]), GridMapError, r"still\[0\] is -1; allowed: whole numbers 0 .. 3"),
    "still beyond 64 bits": (observe([2**63]), GridMapError, r"still\[0\] is 9223372036854775808; allowed"),
    "still removed": (observe([0, 3]), GridMapError, r"still\[1\] is 3, an agent that was removed; allowed: those on"),
    # where agents are
    "positions too few": (observe(positions=AT[:2]), GridMapError, "positions has 2 rows; allowed: 4"),
    "positions infinite": (observe(positions=[[-INF, 0], *AT[1:]]), GridMapError, rf"positions\[0\] is .*inf.*{TILES}"),
    "positions NaN": (observe(positions=[*AT[:3], [0, NAN]]), GridMapError, r"positions\[3\] is .*nan.*allowed"),
    "positions outside": (observe(positions=[[0, 7], *AT[1:]]), GridMapError, r"agent 0 is at \[0, 7\], outside"),
    "positions shared": (observe(positions=[[3, 3], *AT[1:]]), GridMapError, "agents 0 and 1 are both at"),
    "headings too few": (observe(headings=[1]), GridMapError, r"headings is int64 \(1,\); allowed: integers \(4,\)"),
    "headings beyond 3": (observe(headings=[0, 4, 0, 0]), GridMapError, "heading of agent 1 is 4; allowed: 0 .. 3"),
    # goals
    "goals -inf": (step(first_goal(-INF, 0)), GridMapError, rf"goals\[0\] is \[-inf, 0.0\]; allowed: {TILES}"),
    "goals inf": (step(first_goal(0, INF)), GridMapError, r"goals\[0\] is \[0.0, inf\]; allowed"),
    "goals NaN": (step(first_goal(NAN, 0)), GridMapError, r"goals\[0\] is \[nan, 0.0\]; allowed"),
    "goals beyond 32 bits": (step(first_goal(-HUGE, 0)), GridMapError, r"goals\[0\] is \[-1099511627776.0, 0.0\]"),
    "goals beyond 64 bits": (step(first_goal(2**70, 0)), GridMapError, "goals has the type object; allowed: numbers"),
    "goals of uint64": (step(np.full((4, 2), 2**64 - 1, np.uint64)), GridMapError, r"goals\[0\] is .*allowed"),
    "goals outside": (step(first_goal(0, -1)), GridMapError, r"goal of agent 0 is \[0, -1\], outside the 4 x 5 map"),
    "goals halves": (step(first_goal(0.5, 0)), GridMapError, r"goals\[0\] is \[0.5, 0.0\]; allowed: whole numbers"),
    "goals too few": (step(GOALS[:1]), GridMapError, "goals has 1 rows; allowed: 4"),
    "goals of three columns": (step(np.zeros((4, 3))), GridMapError, r"goals has the shape \(4, 3\); allowed"),
    "goals none": (step(None), GridMapError, "goals has the type object"),
    "goals true": (step(np.ones((4, 2), bool)), GridMapError, "goals has the type bool; allowed: whole numbers"),
    "goals to ask about": (lambda f: f.steps_to_go(first_goal(-INF, 0)), GridMapError, r"goals\[0\] is \[-inf"),
    # budgets
    "budget negative": (step(budget_s=-1), SettingsError, "budget_s is -1; allowed: a number from 0 to 86400 seconds"),
    "budget NaN": (step(budget_s=NAN), SettingsError, "budget_s is nan; allowed"),
    "budget infinite": (step(budget_s=INF), SettingsError, "budget_s is inf; allowed"),
    "budget a text": (step(budget_s="1"), SettingsError, "budget_s is '1'; allowed"),
    "budget true": (step(budget_s=True), SettingsError, "budget_s is True; allowed"),
    # agents that come and go
    "starts twice": (lambda f: f.start([[0, 0], [0, 0]]), GridMapError, "agent 0 .* too near to another one"),
    "starts blocked": (lambda f: f.start([[0, 0], [1, 1]]), GridMapError, r"agent 1 is at \[1, 1\], which is blocked"),
    "starts -inf": (lambda f: f.start([[-INF, 0]]), GridMapError, rf"starts\[0\] is \[-inf, 0.0\]; allowed: {TILES}"),
    "starts negative": (lambda f: f.start([[-1, 0]]), GridMapError, r"agent 0 is at \[-1, 0\], outside"),
    "start headings": (lambda f: f.start([[0, 0]], [-1]), GridMapError, "heading of agent 0 is -1; allowed: 0 .. 3"),
    "start headings true": (lambda f: f.start([[0, 0]], [True]), GridMapError, r"headings is bool \(1,\); allowed"),
    "start headings 64 bits": (lambda f: f.start([[0, 0]], [2**63]), GridMapError, "heading of agent 0 is 9223372036"),
    "added on an agent": (lambda f: f.add([[0, 0]]), GridMapError, "agent 0 of those that start is too near"),
    "added twice": (lambda f: f.add([[0, 1], [0, 1]]), GridMapError, "agent 0 of those that start is too near"),
    "added blocked": (lambda f: f.add([[1, 1]]), GridMapError, "agent 0 .* blocked"),
    "speeds zero": (lambda f: f.add([[0, 1]], speeds=[[0, 1]]), GridMapError, r"speeds\[0\] is \[0, 1\]; allowed"),
    "speeds too slow": (lambda f: f.start([[0, 1]], speeds=[[1, 4]]), GridMapError, r"speeds\[0\] is \[1, 4\]"),
    "speeds NaN": (lambda f: f.start([[0, 1]], speeds=[[NAN, 1]]), GridMapError, r"speeds is float64 \(1, 2\)"),
    "speeds too few": (lambda f: f.start(AT, speeds=[[1, 1]]), GridMapError, r"speeds is int64 \(1, 2\); .* \(4, 2\)"),
    "removed before": (lambda f: f.remove([3]), GridMapError, r"agents\[0\] is 3, an agent that was removed"),
    "removed twice": (lambda f: f.remove([1, 0, 1]), GridMapError, "agents names 1 more than once; allowed"),
    "removed nobody": (lambda f: f.remove([99]), GridMapError, r"agents\[0\] is 99; allowed: whole numbers 0 .. 3"),
    "removed of two axes": (lambda f: f.remove([[0, 1]]), GridMapError, r"agents is int64 \(1, 2\); allowed"),
    # the map
    "tiles that do not match": (lambda f: f.update([0], [0, 1], [1]), GridMapError, "changed tiles have rows"),
    "tiles outside": (lambda f: f.update([9], [0], [1]), GridMapError, r"changed tile 0 is \(9, 0\)"),
    "costs negative": (lambda f: f.update([0], [0], [-1]), GridMapError, r"changed tile \(0, 0\) gets the cost -1"),
    "guidance none": (lambda f: setattr(f, "guidance", None), GridMapError, "guidance is a NoneType; allowed"),
    "guidance of another map": (lambda f: setattr(f, "guidance", Guidance(COSTS)), GridMapError, r"of \(2, 2\) tiles"),
    # whole plans
    "assign a text": (solve([[0, 0]], [[0, 1]], assign="no"), SettingsError, "assign is 'no'; allowed: True or False"),
    "assign a number": (solve([[0, 0]], [[0, 1]], assign=1), SettingsError, "assign is 1; allowed: True or False"),
    "assign none": (solve([[0, 0]], [[0, 1]], assign=None), SettingsError, "assign is None; allowed"),
    "assign an array": (solve([[0, 0]], [[0, 1]], assign=np.ones(2)), SettingsError, "assign is array"),
    "assign one tile": (solve([[0, 0]], [0, 1], assign=True), GridMapError, r"goals has the shape \(2,\); allowed"),
    "assign nothing": (solve([[0, 0]], [], assign=True), GridMapError, "goals has 0 rows; allowed: 1 at least"),
    "assign -inf": (solve([[0, 0]], [[-INF, 0]], assign=True), GridMapError, r"goals\[0\] is .*not finite"),
    "no goals": (solve([[0, 0]], []), GridMapError, "goals has 0 rows; allowed: 1, one for each start"),
    "a goal of no axes": (solve([[0, 0]], 3), GridMapError, r"goals has the shape \(\); allowed: \(N, 2\)"),
    "a sink of three": (solve([[0, 0]], [0, 1, 2]), GridMapError, r"goals has the shape \(1, 3\)"),
    "seed beyond 63 bits": (solve([[0, 0]], [[0, 1]], seed=2**63), SettingsError, "seed is 9223372036854775808"),
    "seed negative": (solve([[0, 0]], [[0, 1]], seed=-1), SettingsError, "seed is -1; allowed: whole numbers 0 .."),
    "seed NaN": (solve([[0, 0]], [[0, 1]], seed=NAN), SettingsError, "seed is nan; allowed: whole numbers"),
    "time NaN": (solve([[0, 0]], [[0, 1]], time_limit_s=NAN), SettingsError, "time_limit_s is nan; allowed"),
    "plan headings": (solve([[0, 0]], [[0, 1]], headings=[NAN]), GridMapError, r"headings is float64 \(1,\)"),
    "plan speeds": (solve([[0, 0]], [[0, 1]], speeds=[[9, 1]]), GridMapError, r"speeds\[0\] is \[9, 1\]; allowed"),
    "speeds into a sink": (solve([[0, 0]], [0, 1], speeds=[[2, 1]]), SettingsError, "a sink .* take up to 2 ticks"),
    "a plan's agent": (plan_of_one(1), GridMapError, "agent is 1; allowed: whole numbers 0 .. 0"),
    "a plan's agent, negative": (plan_of_one(-1), GridMapError, "agent is -1; allowed"),
    "a plan's agent by name": (plan_of_one("a"), GridMapError, "agent is 'a'; allowed"),
    # the validator
    "validator NaN": (moved(positions=np.full((2, 1, 2), NAN)), GridMapError, "positions is float64"),
    "validator 64 bits": (moved(positions=np.full((2, 1, 2), 2**62)), GridMapError, "positions has 46116.* allowed"),
    "validator uint64": (moved(positions=np.full((2, 1, 2), 2**64 - 1, np.uint64)), GridMapError, "positions has 1844"),
    "validator near": (moved(near=[[0.5, 0]]), GridMapError, r"near is \[\[0.5, 0.0\]\]; allowed: integers \(K, 2\)"),
    "validator near, far off": (moved(near=[[2**62, 0]]), GridMapError, "near is .*; allowed: offsets -32768 .. 32768"),
    "validator following": (moved(following="no"), SettingsError, "following is 'no'; allowed: True or False"),
    "validator most": (moved(most=0), GridMapError, "most is 0; allowed"),
    "validator blocked NaN": (moved(blocked=[[NAN]]), GridMapError, r"blocked is float64 \(1, 1\); allowed: bool"),
    "validator ticks": (moved(ticks=[1, 0]), GridMapError, r"ticks is \[1, 0\]; allowed: integers from 1"),
    "validator ticks too few": (moved(ticks=[1]), GridMapError, r"ticks is \[1\]; allowed"),
    # guidance
    "moves zero": (guidance(0 * COSTS), GridMapError, "moves costs 0 .. 0; allowed: 1 .. 123"),
    "moves NaN": (guidance(COSTS * NAN), GridMapError, r"moves is float64 \(2, 2, 4\); allowed: integers"),
    "unit NaN": (guidance(COSTS, NAN), GridMapError, "unit is nan; allowed: whole numbers 1 .. 25"),
    "plain of no map": (lambda f: Guidance.plain(None), GridMapError, "grid is None; allowed: a GridMap"),
    "lanes of an array": (lambda f: Guidance.lanes(FREE), GridMapError, "grid is an array .*; allowed: a GridMap"),
    "saved to a number": (lambda f: Guidance(COSTS).save(3.5), GridMapError, "guidance must be a path .* got 3.5"),
    "loaded from none": (lambda f: Guidance.load(None), GridMapError, "guidance must be a path .*, got None"),
    "learn from no map": (lambda f: learn_guidance(FREE, 2), GridMapError, "grid is a ndarray; allowed: a GridMap"),
    "learn from two children": (learn(children=2), SettingsError, "children is 2; allowed: whole numbers 4 .."),
    "learn for a wall": (learn(goals=[[0, 0], [1, 1]]), GridMapError, r"goals\[1\] is \[1, 1\]; allowed: tiles of"),
    "learn for nothing": (learn(goals=[]), GridMapError, "goals is empty; allowed: tiles of the map's largest part"),
    "learn and tell a number": (learn(each=3), SettingsError, "each is 3; allowed: a function"),
    "learn for too many": (learn(99), GridMapError, "agents is 99; allowed: at most 19"),
    "learn for NaN": (learn(NAN), SettingsError, "agents is nan; allowed: whole numbers 1 .."),
    "learn no rounds": (learn(rounds=0), SettingsError, "rounds is 0; allowed: whole numbers 1 .."),
    "learn steps true": (learn(steps=True), SettingsError, "steps is True; allowed"),
    "learn seed": (learn(seed=NAN), SettingsError, "seed is nan; allowed: an integer"),
    "learn motion": (learn(motion="six"), SettingsError, "motion is 'six': use one of four, turning"),
    # planners and settings
    "device": (lambda f: FleetPlanner(GridMap(FREE), device="tpu"), DeviceError, "unknown device 'tpu'"),
    "motion": (lambda f: FleetPlanner(GridMap(FREE), ["four"]), SettingsError, "motion is .'four'.: use one of"),
    "grid": (lambda f: FleetPlanner(FREE), GridMapError, "grid is a ndarray; allowed: a GridMap"),
    "settings": (lambda f: FleetPlanner(GridMap(FREE), settings={}), SettingsError, "are a fleet.Settings, not a dict"),
    "horizon": (lambda f: fleet(ticks_per_move=4), SettingsError, "horizon is 3 ticks; allowed: at least 4"),
    "following": (lambda f: Settings(following="no"), SettingsError, "following is 'no'; allowed: true or false"),
    "size": (lambda f: Settings(size=NAN), SettingsError, "size is nan; allowed: an integer from 1 to 15 tiles"),
    "guidance": (lambda f: Settings(guidance="no"), SettingsError, "guidance is 'no'; allowed: auto, plain, lanes"),
}  # fmt: skip


def state_of(planner):
    """What a caller sees of a fleet, now and in the next steps."""
    seen = [planner.grid.costs, planner.guidance.moves, planner.stuck]
    for _ in range(4):
        seen += [planner.step(GOALS), planner.positions, planner.headings]
    return [array.tolist() for array in seen]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_and_changes_nothing(name):
    call, error, text = REFUSED[name]
    planner, untouched = fleet(), fleet()
    for each in (planner, untouched):
        each.step(GOALS)
    with pytest.raises(error, match=text):
        call(planner)
    assert state_of(planner) == state_of(untouched)


def test_what_may_look_odd_is_taken():
    planner = fleet()
    planner.step([[-1, -1]] * 4)  # nobody has a goal
    planner.step([[1, 1], *GOALS[1:]])  # blocked: it cannot be reached
    planner.observe(planner.positions, still=np.array([1, 1], np.uint8))
    planner.remove([])
    assert planner.solve([[0, 0]], [[0, 1]], 0.05, seed=2**63 - 1, assign=np.bool_(False)).solved
    assert planner.solve([], [], 0.05, assign=True).solved and planner.solve([], [], 0.05).solved
    assert learn_guidance(GridMap(FREE), 2, device="cpu", rounds=1, steps=1, seed=-(2**80))[1]
    assert conflicts(np.full((2, 3, 2), -(2**31) + 1)) == []
