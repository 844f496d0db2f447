"""Problems of a data set: each is a pure function of the recipe and of its number.

Random numbers of a scene come from (seed, 0, scene), those of a problem from (seed, 1, number), so every worker makes
the same ones. Starts and goals are float32 numbers, as the planner's are. The checker on the CPU decides whether they
are free, whatever device plans.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..arm import CollisionChecker, CollisionWorld
from ..arm.robot.model import attached
from ..parallel.sampling import folded_seed
from .furniture import as_obstacles, furnish, reached
from .obstacles import Obstacle, world_of
from .recipe import Draw, Recipe

PLACES = 4096  # random configurations that say where the tool comes to
POOL = 1 << 16  # likewise where furniture needs configurations with the tool in its places
JITTER = 0.01  # distance of starts and goals from configurations of the pool, in joints' ranges
PARKED = 256  # random configurations with which the room that furniture leaves is measured
ROOM = 0.1  # part of the free ones of these that furniture has to leave free
STANDS = 16  # tries to place a piece of furniture so
BLOCK = 16  # configurations drawn at once
TRIES = 8  # places for a random obstacle
EQUAL = {"box": [0, 1, 2], "cylinder": [0, 0, 2], "sphere": [0, 0, 0]}  # which of three numbers are its extents
KEPT = 256  # scenes of files that are kept open
NO_START, NO_GOAL = "no free start", "no free goal"


@dataclass(frozen=True)
class Scene:
    """Obstacles, and the checker on the CPU among them. number: of the recipe's scenes, or of the random one

    places: of furniture, where the tool has to be: lowest and highest corners (P, 3) in a frame, whose rotation (3, 3)
        and origin (3,) in the root frame follow; None: it may be anywhere
    near: (K,) numbers of the configurations of the pool whose tool is in one of them
    """

    number: int
    obstacles: tuple[Obstacle, ...]
    checker: CollisionChecker
    places: tuple[np.ndarray, ...] | None = None
    near: np.ndarray | None = None


@dataclass(frozen=True)
class Problem:
    """One problem.

    seed: of the planner;  start: (dof,), goals: (G, dof), rad or m
    status, message: why there is no problem: NO_START, NO_GOAL and a sentence. Then what was not found is NaN
    """

    number: int
    seed: int
    scene: Scene
    start: np.ndarray
    goals: np.ndarray
    status: str = ""
    message: str = ""


class ProblemMaker:
    """Makes the problems of one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, robot = recipe, recipe.robot
        self._spread = np.minimum(robot.upper - robot.lower, np.where(robot.periodic, 2 * np.pi, np.inf))
        draw, self._link = recipe.draw, robot.link_index(recipe.tip)
        self._pool = self._uniform(np.random.default_rng(0), POOL if draw.ends == "furniture" else PLACES)
        half = len(self._pool) // 2
        self._far = draw.apart * float(self._distance(self._pool[:half], self._pool[half:]).mean())
        self._places = self._tips(self._pool)
        if draw.furniture:
            self._room = reached(robot, [recipe.tip], self._places)
            bare = CollisionChecker(robot, CollisionWorld(), "cpu", margin=recipe.margin)
            self._parked = self._pool[:PARKED][bare.configurations_valid(self._pool[:PARKED])]
        self._base = robot.T_parent_base[0, :3, 3]
        away = np.linalg.norm(self._places - self._places.mean(axis=0), axis=1)
        self._reach = max(float(np.percentile(away, 95)), 1e-3)
        self._fixed = lru_cache(KEPT)(lambda number: self._opened(number, recipe.scenes[number][1]))
        self._last: tuple[int, Scene] | None = None

    def scene(self, number: int) -> Scene:
        """The scene of a problem. The last random one is kept, for the problems that share it."""
        place = number // self.recipe.draw.per_scene
        if self.recipe.scenes:
            return self._fixed(int(_rng(self.recipe.seed, 0, place).integers(len(self.recipe.scenes))))
        if self._last is None or self._last[0] != place:
            rng, draw = _rng(self.recipe.seed, 0, place), self.recipe.draw
            if draw.furniture:
                scene = self._furnished(place, rng)
            else:
                scene = self._opened(place, random_obstacles(rng, draw, self._places, self._base, self._reach))
            self._last = place, scene
        return self._last[1]

    def _furnished(self, number, rng):
        """A scene of a piece of furniture that leaves the robot room; the last one tried where none does."""
        draw, least = self.recipe.draw, ROOM * len(self._parked)
        for _ in range(STANDS):
            family = draw.furniture[rng.integers(len(draw.furniture))]
            entries, places, turn, origin = furnish(family, self._room, 1, rng)
            scene = self._opened(number, as_obstacles(entries))
            if scene.checker.configurations_valid(self._parked).sum() >= least:
                break
        if draw.ends == "anywhere":
            return scene
        low, high = (np.array(corners) for corners in zip(*places))
        near = np.flatnonzero(_in_places(self._places, low, high, turn, origin))
        return replace(scene, places=(low, high, turn, origin), near=near)

    def _opened(self, number, obstacles):
        checker = CollisionChecker(self.recipe.robot, world_of(obstacles), "cpu", margin=self.recipe.margin)
        return Scene(number, obstacles, checker)

    def problem(self, number: int) -> Problem:
        """Problem `number`, from 0."""
        recipe, draw, scene = self.recipe, self.recipe.draw, self.scene(number)
        rng, dof = _rng(recipe.seed, 1, number), recipe.robot.dof
        start, drawn, near, straight = None, 0, 0, 0
        seed = folded_seed(first_seed(recipe.seed) + number)
        while drawn < draw.tries:
            block = self._drawn(rng, scene)[: draw.tries - drawn]
            drawn += BLOCK
            if not len(block):
                continue
            for q in block[scene.checker.configurations_valid(block)]:
                if start is None:
                    start = q
                elif self._distance(start, q) < self._far or np.array_equal(start, q):
                    near += 1
                elif not draw.straight and scene.checker.motions_valid(start[None], q[None])[0]:
                    straight += 1
                else:
                    return Problem(number, seed, scene, start, self._goals(q, scene, seed))
        none = np.full((1, dof), np.nan)
        if start is None:
            why = f"none of {draw.tries} configurations drawn is free; {_why(scene, block)}"
            return Problem(number, seed, scene, none[0], none, NO_START, why)
        why = (
            f"of {draw.tries} configurations drawn none but the start is a goal: {near} too near to it, {straight} "
            "straight ahead, the others not free"
        )
        return Problem(number, seed, scene, start, none, NO_GOAL, why)

    def _goals(self, q, scene, seed):
        """(G, dof) the configuration, and others that put the tool at the same pose where goals are poses."""
        recipe = self.recipe
        if recipe.draw.goals == "configuration" or recipe.draw.solutions == 1:
            return q[None]
        found = recipe.robot.inverse_kinematics(
            recipe.robot.link_poses(q)[recipe.tip][0],
            link=recipe.tip,
            seed_q=q,
            solutions=4 * recipe.draw.solutions,
            seeds=16 * recipe.draw.solutions,
            seed=seed,
        )
        others = inside(found.q, recipe.robot)
        others = others[np.abs(others - q).max(axis=1, initial=0.0) > 0.04]
        others = others[scene.checker.configurations_valid(others)] if len(others) else others
        return np.concatenate([q[None], others[: recipe.draw.solutions - 1]])

    def _drawn(self, rng, scene):
        """(K, dof) configurations, up to BLOCK: uniform, or with the tool in the places of the scene."""
        if scene.near is None:
            return self._uniform(rng, BLOCK)
        if not len(scene.near):
            return self._pool[:0]
        q = self._pool[rng.choice(scene.near, BLOCK)]
        q, robot = q + rng.uniform(-JITTER, JITTER, q.shape) * self._spread, self.recipe.robot
        q = inside(q.clip(robot.lower, robot.upper), robot)
        return q[_in_places(self._tips(q), *scene.places)]

    def _tips(self, q):
        """(N, 3) where the tool is at q (N, dof), in the root frame."""
        robot, link = self.recipe.robot, self._link
        return attached(robot.frame_poses(q), int(robot.link_frame[link]), robot.T_frame_link[link])[:, :3, 3]

    def _uniform(self, rng, count):
        """(count, dof) uniform within the limits, float32 numbers."""
        robot = self.recipe.robot
        return inside(rng.uniform(robot.lower, robot.upper, (count, robot.dof)), robot)

    def _distance(self, a, b):
        """Of configurations (..., dof) in joint space; joints that turn without end go the short way."""
        change = b - a
        turning = self.recipe.robot.continuous
        return np.linalg.norm(np.where(turning, np.remainder(change + np.pi, 2 * np.pi) - np.pi, change), axis=-1)


def random_obstacles(
    rng: np.random.Generator, draw: Draw, places: np.ndarray, base: np.ndarray, reach: float
) -> tuple[Obstacle, ...]:
    """Obstacles of a random scene: around places that the tool comes to, with sizes uniform in their logarithm.

    places: (P, 3) of the tool; base: (3,) from which they keep away; reach: metres
    An obstacle that finds no room in a few tries is left out.
    """
    count = int(rng.integers(draw.least, draw.most + 1))
    kinds = [draw.kinds[k] for k in rng.integers(len(draw.kinds), size=count)]
    sizes = np.exp(rng.uniform(np.log(draw.smallest * reach), np.log(draw.largest * reach), (count, 3)))
    sizes = np.array([size[EQUAL[kind]] for size, kind in zip(sizes, kinds)]).reshape(-1, 3).round(4).clip(1e-4)
    if draw.tilted:
        quaternions = rng.normal(size=(count, 4))  # of equal likelihood, once they have length 1
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    else:
        turn = rng.uniform(-np.pi / 2, np.pi / 2, count)
        quaternions = np.stack([0 * turn, 0 * turn, np.sin(turn), np.cos(turn)], axis=1)
    centres = places[rng.integers(len(places), size=(count, TRIES))] + rng.uniform(-0.2, 0.2, (count, TRIES, 3)) * reach
    far = np.linalg.norm(centres - base, axis=2) >= draw.away * reach + np.linalg.norm(sizes, axis=1)[:, None] / 2
    centres = centres[np.arange(count), far.argmax(axis=1)].round(4)
    rows = zip(kinds, sizes.tolist(), centres.tolist(), quaternions.round(9).tolist(), far.any(axis=1), strict=True)
    return tuple(
        Obstacle(f"{kind}{i}", kind, tuple(size), tuple(centre), tuple(quaternion))
        for i, (kind, size, centre, quaternion, placed) in enumerate(rows)
        if placed
    )


def first_seed(seed: int) -> int:
    """The planner's seed of problem 0 of a data set; problem n has n more."""
    return int(np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(1, np.uint64)[0] >> 2)


def _rng(seed, *key):
    """A stream of random numbers for each key of a seed; no two are alike."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def inside(q: np.ndarray, robot) -> np.ndarray:
    """q (N, dof) as float32 numbers within the limits, in float64."""
    narrow = np.asarray(q, dtype=np.float32)
    narrow = np.where(narrow > robot.upper, np.nextafter(narrow, np.float32(-np.inf)), narrow)
    return np.where(narrow < robot.lower, np.nextafter(narrow, np.float32(np.inf)), narrow).astype(np.float64)


def _in_places(points, low, high, turn, origin):
    """(N,) bool: which of some points (N, 3) are in a place of a scene? See `Scene.places`"""
    local = (points - origin) @ turn
    x, y, z = ((local > low.min(axis=0)) & (local < high.max(axis=0))).T
    found = x & y & z  # in the box around all places
    near = local[found][:, None]
    found[found] = ((near > low) & (near < high)).all(axis=2).any(axis=1)
    return found


def _why(scene, block):
    """What the first of the configurations `block` meets, in words."""
    if not len(block):
        return "its tool comes to no place of the furniture"
    pairs = scene.checker.colliding_pairs(block[0])
    return f"in one of them '{pairs[0][0]}' meets '{pairs[0][1]}'" if pairs else "they do not keep the margin"
