"""Planning problems for any robot, from a seed: furniture that fits its reach, and ways from place to place in it.

A pool of random configurations, with where their end effectors are, says how far the robot reaches, and so how large
furniture is and where it stands (datasets/furniture.py). Start and goals are members of the pool whose end effectors
are in places of the furniture; both keep a clearance from it by our checker, and coal has to find them free as well
where it is installed. A problem whose straight way is free is not kept. Every search ends after a count of tries, never
after a time, so a seed gives the same problems on any machine.
"""

import functools
import itertools
import zlib
from dataclasses import dataclass, replace

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.robot.model import attached
from gpu_planners.datasets.furniture import FAMILIES, Reached, furnish, reached
from gpu_planners.errors import GpuPlannersError

from . import coal_peer, robots
from .problems import Problem, add_obstacles

POOL = 1 << 18  # random configurations of a robot
CHUNK = 1 << 13  # of them placed at once
CLEARANCE = 0.005  # from obstacles, in reaches
PARKED = 256  # configurations that say whether furniture leaves the robot room,
ROOM = 0.1  # by the share of those free without it that are free among it
SCENES = 300  # tried for a problem,
CHOICES = 8  # choices of places tried in each,
TRIED = 6000  # configurations of each end effector in its place,
JOINED = 2000  # and configurations of all end effectors together
STRAIGHT = 200  # places at which a straight way is looked at
HARD = 1000  # samples that searches for a hard problem take at least,
SEEDS = (0, 1)  # each of them;
NARROW = 0.7  # of the usual opening: in furniture for hard problems
MOST = 200_000  # at most: what is not solved may have no solution


@dataclass(frozen=True)
class Pool:
    """What a robot reaches, by random configurations.

    q: (N, dof) within the limits, rad or m
    tips: (T, N, 3) the end effectors' centres in the root frame, metres
    moves: (T, dof) bool, which joints move each end effector
    room: of all end effectors together
    """

    q: np.ndarray
    tips: np.ndarray
    moves: np.ndarray
    room: Reached


def problems(robot, count, seed=0, families=tuple(FAMILIES), goals=1, hard=False):
    """[Problem] for a robot of robots.ROBOTS, `count` of each family. See Maker.problem."""
    maker = maker_of(robot)
    return [maker.problem(family, index, seed, goals, hard) for family in families for index in range(count)]


@functools.cache
def maker_of(robot):
    """The Maker for a robot of robots.ROBOTS."""
    return Maker(robots.rig(robot))


class Maker:
    """Makes problems for one robots.Rig.

    refused: how many ends coal found in collision that our checker had called free
    """

    def __init__(self, rig, size=POOL):
        self.rig, self.model, self.refused = rig, rig.model, 0
        self.pool = _pool(rig, size)
        self._checker = CollisionChecker(rig.model, CollisionWorld(), "cpu")
        self._own = zlib.crc32(rig.name.encode())
        bare = self.pool.q[:PARKED]
        self._parked = bare[self._checker.configurations_valid(bare)]
        if not len(self._parked):
            raise GpuPlannersError(f"{rig.name}: none of {PARKED} random configurations is free of self-collision")

    def problem(self, family, index, seed=0, goals=1, hard=False):
        """Problem `index` of a family of furniture.FAMILIES. goals: how many it has at most, all in the same places
        hard: it is in narrow furniture, and searches by our RRT-Connect take HARD samples and more

        Raises GpuPlannersError for another family, and where the robot does not fit into any furniture tried, or finds
        none of it hard: tables and boxes seldom are for a single arm.
        """
        if family not in FAMILIES:
            raise GpuPlannersError(f"family is {family!r}; allowed: {', '.join(FAMILIES)}")
        rng = np.random.default_rng([self._own, zlib.crc32(family.encode()), index, seed])
        for _ in range(SCENES):
            obstacles, places = self._scene(family, rng, NARROW if hard else 1.0)
            self._enter(obstacles)
            parked = self._parked[self._checker.configurations_valid(self._parked)]
            if len(parked) < ROOM * len(self._parked):
                continue
            ends = self._ends(obstacles, places, parked[0], goals, rng)
            if ends and (not hard or self._is_hard(*ends)):
                joints = self.model.joint_names
                return Problem(family, index, joints, obstacles, *ends, dict(self.rig.fixed), True, True, np.nan)
        raise GpuPlannersError(f"{self.rig.name}: no {family} with a start and a goal in it among {SCENES}")

    def _scene(self, family, rng, wide):
        """([obstacle dict], [(N,) bool of each tip: which of the pool are in the place]) in the root frame."""
        room = replace(self.pool.room, opening=wide * self.pool.room.opening)
        obstacles, places, turn, origin = furnish(family, room, len(self.rig.tips), rng)
        local = (self.pool.tips - origin) @ turn
        return obstacles, [((local > low) & (local < high)).all(axis=2) for low, high in places]

    def _enter(self, obstacles):
        self._checker.world.clear()
        self._checker.margin = CLEARANCE * self.pool.room.reach
        add_obstacles(self._checker.world, obstacles)

    def _ends(self, obstacles, places, parked, goals, rng):
        """(start (dof,), goals (G, dof)) in different places, or None."""
        tips = len(self.rig.tips)
        coal = None if coal_peer.unavailable() else self.rig.coal_scene(obstacles)
        alone = functools.cache(lambda tip, place: self._alone(tip, places[place][tip], parked))
        choices = [choice for choice in itertools.permutations(range(len(places)), 2 * tips)]
        for number in rng.permutation(len(choices))[:CHOICES]:
            chosen = choices[number]
            if not all(len(alone(tip % tips, place)) for tip, place in enumerate(chosen)):
                continue
            ends = [
                self._joined([alone(tip, place) for tip, place in enumerate(half)], coal, count, rng)
                for half, count in ((chosen[:tips], 1), (chosen[tips:], goals))
            ]
            if all(len(end) for end in ends) and not self._straight(*ends):
                return ends[0][0], ends[1]
        return None

    def _alone(self, tip, inside, parked):
        """(K, dof) free configurations with one end effector in its place, and what else moves parked."""
        rows = self.pool.q[np.flatnonzero(inside)[:TRIED]]
        q = np.where(self.pool.moves[tip], rows, parked)
        return q[self._checker.configurations_valid(q)] if len(q) else q

    def _joined(self, parts, coal, count, rng):
        """(K, dof) at most `count` free configurations that have each end effector where one of its part has it.

        parts: for each end effector a (N, dof) of configurations
        """
        if len(parts) == 1:
            q = rng.permutation(parts[0])
        else:
            q = parts[0][rng.integers(len(parts[0]), size=JOINED)]
            for moves, part in zip(self.pool.moves[1:], parts[1:], strict=True):
                q = np.where(moves, part[rng.integers(len(part), size=JOINED)], q)
        q = np.clip(np.round(q, 4), self.model.lower, self.model.upper)
        found = []
        for row in q[self._checker.configurations_valid(q)]:
            if coal is not None and coal.in_collision(row):
                self.refused += 1
            else:
                found.append(row)
            if len(found) == count:
                break
        return np.array(found).reshape(-1, self.model.dof)

    def _is_hard(self, start, goals):
        self._checker.margin = 0.0
        for seed in SEEDS:
            settings = rrt_connect.Settings(shortcut_rounds=0, searches=1, max_samples=MOST, time_limit_s=3600.0)
            result = rrt_connect.solve(start, goals, self._checker, settings, seed)
            if not result.solved or result.samples < HARD:
                return False
        return True

    def _straight(self, start, goals):
        """Is a straight way from start (1, dof) to one of the goals (G, dof) free, looked at in STRAIGHT places?"""
        self._checker.margin, shares = 0.0, np.linspace(0, 1, STRAIGHT)[:, None]
        free = any(self._checker.configurations_valid(start + shares * (goal - start)).all() for goal in goals)
        self._checker.margin = CLEARANCE * self.pool.room.reach
        return free


def _pool(rig, size):
    """The Pool of a Rig, of `size` configurations."""
    model = rig.model
    q = np.random.default_rng(zlib.crc32(rig.name.encode())).uniform(*_usual(model), (size, model.dof))
    tips = np.empty((len(rig.tips), size, 3))
    for begin in range(0, size, CHUNK):
        poses = model.frame_poses(q[begin : begin + CHUNK])
        for t, tip in enumerate(rig.tips):
            link = model.link_index(tip)
            T_root_tip = attached(poses, model.link_frame[link], model.T_frame_link[link])
            tips[t, begin : begin + CHUNK] = T_root_tip[:, :3, 3]
    moves = np.array([_moving(model, tip) for tip in rig.tips])
    return Pool(q, tips, moves, reached(model, rig.tips, tips.reshape(-1, 3)))


def _usual(model):
    """Lower and upper (dof,) limits; of a joint that can turn by half a turn both ways, no more than that."""
    wide = model.periodic & (model.lower <= -np.pi) & (model.upper >= np.pi)
    return np.where(wide, -np.pi, model.lower), np.where(wide, np.pi, model.upper)


def _moving(model, tip):
    """(dof,) bool: which joints move a link. GpuPlannersError where none does."""
    moves, frame = np.zeros(model.dof, bool), model.link_frame[model.link_index(tip)]
    while frame >= 0:
        moves[model.frames[frame]["joint"]] = True
        frame = model.frames[frame]["parent"]
    if not moves.any():
        raise GpuPlannersError(f"no planning joint of '{model.name}' moves the link '{tip}'")
    return moves
