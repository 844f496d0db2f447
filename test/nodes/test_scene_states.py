"""The arm node's scene under all that changes it, against a plain dict of boxes.

Markers, AttachObjects, clouds, joint states, the clock and other descriptions change it in any order; what is refused
changes nothing. The checker then answers as a new one that is made of the dict.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from builtin_interfaces.msg import Duration
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from node_harness import GROUP, ROBOT, marker, request
from state_machines import driven
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames
from gpu_planners.arm.geometry.bricks import Bricks
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.errors import GpuPlannersError
from gpu_planners.nodes.arm.attaching import attach_objects
from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.arm.planning_scene import PlanningScene
from gpu_planners.nodes.arm.scene_objects import SceneObject, Source
from gpu_planners_msgs.msg import AttachedObject
from gpu_planners_msgs.srv import AttachObjects

SEEDS = st.integers(0, 2**32 - 1)
LINKS = ("upper", "fore", "hand", "finger")
FRAMES = ("plate", "base", "", "world")
WITHOUT_FINGER = ROBOT[: ROBOT.index('  <link name="finger">')] + ROBOT[ROBOT.index("  <joint name=") :]
WITHOUT_FINGER = WITHOUT_FINGER[: WITHOUT_FINGER.index('  <joint name="slide"')] + "</robot>"
MOST, ALWAYS = 12, float("inf")


@dataclass(frozen=True)
class Box:
    """Boxes that are one object. boxes: ((4, 4) pose in the object, (3,) size); pose: (4, 4) in the root, or in `link`

    source: which Source put it there; link: that carries it, None: it stands
    """

    boxes: tuple
    pose: np.ndarray
    source: Source
    expires: float = ALWAYS
    group: str = ""
    link: str | None = None
    touch: tuple = ()
    voxels: bool = False


def at(position):
    T = np.eye(4)
    T[:3, 3] = position
    return T


class Scene(RuleBasedStateMachine):
    """known: {name: Box} that should be there; pairs, allowed: what may touch; q: where the joints were measured"""

    @initialize(seed=SEEDS)
    def make(self, seed):
        values = ArmParameters(joints=tuple(GROUP), device="cpu", world_frame="world", max_obstacles=MOST)
        self.scene = PlanningScene(values)
        self.known, self.pairs, self.allowed = {}, set(), set()
        self.now, self.text, self.q, self.slide = 100.0, ROBOT, np.zeros(3), 0.0
        self.scene.load_robot(ROBOT, self.now)
        self.bare = load_urdf(ROBOT, joints=GROUP)
        self.frames = fixed_frames(self.bare) | {"": np.eye(4), "world": np.eye(4)}
        display = SimpleNamespace(show_scene=lambda *_: None)
        self.arm = SimpleNamespace(scene=self.scene, display=display, measured=self.measured)
        self.markers(seed, 4, "")
        self.attach_objects(seed, ["with shapes", "take up"])

    def measured(self):
        return None if self.q is None else dict(zip(GROUP, self.q.tolist())) | {"slide": self.slide}

    def link_pose(self, link):
        return self.bare.link_poses(self.q)[link][0]

    def change(self, how, *arguments, known=None, **changes):
        """Make a change. known: what the scene holds then, None: it is refused."""
        if known is None:
            with pytest.raises(GpuPlannersError):
                how(*arguments)
        else:
            how(*arguments)
            self.known = known
            vars(self).update(changes)

    def standing(self):
        return {name: one for name, one in self.known.items() if one.link is None}

    def too_many(self, known):
        return sum(one.link is None for one in known.values()) > MOST

    # ----------------------------------------------------------------------------------------------- markers

    def random_marker(self, rng, namespaces=("a", "b")):
        """A marker of a box that an arm may meet, somewhere in reach."""
        position, scale = rng.uniform(-1.0, 1.0, 3) * (1, 1, 0.3), rng.uniform(0.05, 0.3, 3)
        name = dict(namespace=str(rng.choice(namespaces)), number=int(rng.integers(3)))
        message = marker(position=position, scale=scale, frame=str(rng.choice(FRAMES)), **name)
        message.lifetime = Duration(sec=int(rng.integers(4)))
        return message

    def box_of(self, message, now):
        p, s = message.pose.position, message.scale
        pose = self.frames[message.header.frame_id] @ at((p.x, p.y, p.z))
        expires = now + message.lifetime.sec if message.lifetime.sec else ALWAYS
        boxes = ((np.eye(4), np.array((s.x, s.y, s.z))),)
        return Box(boxes, pose, Source.MARKERS, expires, message.ns)

    @rule(seed=SEEDS, count=st.integers(0, 5), wrong=st.sampled_from(["", "", "", "frame", "scale", "type", "action"]))
    def markers(self, seed, count, wrong):
        rng, known, messages = np.random.default_rng(seed), dict(self.known), []
        for _ in range(count):
            message = self.random_marker(rng)
            message.action = int(rng.choice([Marker.ADD, Marker.DELETE, Marker.DELETEALL], p=[0.7, 0.2, 0.1]))
            name, carried = f"{message.ns}/{message.id}", {k for k, one in known.items() if one.link}
            if message.action == Marker.DELETEALL and rng.random() < 0.5:
                message.ns = ""
            if message.action == Marker.ADD and name not in carried:
                known[name] = self.box_of(message, self.now)
            elif message.action != Marker.ADD:
                for other, one in [*known.items()]:
                    meant = other == name if message.action == Marker.DELETE else message.ns in ("", one.group)
                    if one.link is None and one.source is Source.MARKERS and meant:
                        del known[other]
            messages.append(message)
        if wrong:
            bad = self.random_marker(rng, ("c",))  # a name that no link carries
            bad.header.frame_id = "moon" if wrong == "frame" else ""
            bad.scale.y = 0.0 if wrong == "scale" else 0.1
            bad.type = Marker.ARROW if wrong == "type" else Marker.CUBE
            bad.action = 7 if wrong == "action" else Marker.ADD
            messages.insert(int(rng.integers(count + 1)), bad)
        known = None if wrong or self.too_many(known) else known
        self.change(self.scene.change_obstacles, MarkerArray(markers=messages), self.now, known=known)

    @rule(seed=SEEDS, ignore=st.booleans(), count=st.integers(0, 2))
    def request_with_obstacles(self, seed, ignore, count):
        """They count for the request alone."""
        rng = np.random.default_rng(seed)
        messages = [self.random_marker(rng, ("own",)) for _ in range(count)]
        asked = request(ignore_scene=ignore)
        asked.obstacles = MarkerArray(markers=messages)
        known = {name: one for name, one in self.known.items() if one.link or not ignore}
        known |= {f"{each.ns}/{each.id}": self.box_of(each, 0.0) for each in messages}
        self.compare(self.scene.objects_for(asked), known, rng)

    # ---------------------------------------------------------------------------------------- AttachObjects

    @rule(seed=SEEDS, what=st.sampled_from(["take up", "put down"]))
    def attach_one_object(self, seed, what):
        self.attach_objects(seed, [what])

    @rule(seed=SEEDS, what=st.lists(st.sampled_from(["take up", "with shapes", "put down", "remove"]), max_size=3))
    def attach_objects(self, seed, what):
        """Objects that stand or come with shapes are carried, put down, and removed; all of it or nothing."""
        rng, known, asked = np.random.default_rng(seed), dict(self.known), AttachObjects.Request()
        what = sorted(what, key=["take up", "with shapes", "put down", "remove"].index)  # as the node goes through them
        for each in what:
            carried = [name for name, one in (known or self.known).items() if one.link]
            standing = [name for name, one in (known or self.known).items() if not one.link]
            names = {"take up": standing, "with shapes": [*carried, "new", "other"]}.get(each, carried)
            if rng.random() < 0.05:
                names = [*self.known, "new"]
            if not names:
                continue
            name = str(rng.choice(names))
            if each == "put down":
                asked.detach.append(name)
                known = self.put_down(known, name)
            elif each == "remove":
                asked.remove.append(name)
                there = known is not None and name in known and known[name].link
                known = {other: one for other, one in known.items() if other != name} if there else None
            else:
                asked.attach.append(self.object_to_attach(rng, name, each == "with shapes"))
                known = self.attached(known, asked.attach[-1])
        if known is not None and self.too_many(known):
            known = None
        self.change(attach_objects, self.arm, asked, AttachObjects.Response(), known=known)

    def object_to_attach(self, rng, name, with_shapes):
        links = LINKS if rng.random() < 0.05 else [link for link in LINKS if link in self.bare.link_names]
        touch = [str(link) for link in rng.choice(links, rng.integers(3), replace=False)]
        one = AttachedObject(name=name, link=str(rng.choice(links)), touch_links=touch)
        if with_shapes:
            one.shapes = [marker(position=rng.uniform(-0.1, 0.1, 3), scale=rng.uniform(0.02, 0.2, 3))]
            one.shapes[0].header.frame_id = str(rng.choice(["", one.link, "hand", "base"]))
        return one

    def attached(self, known, one):
        """`known` once a link carries an object; None where that cannot be."""
        has_links = {one.link, *one.touch_links} <= set(self.bare.link_names)
        if known is None or not has_links:
            return None
        before = known.get(one.name)
        rest = {name: each for name, each in known.items() if name != one.name}
        touch = tuple(one.touch_links)
        if not one.shapes:
            if before is None or before.link or before.voxels or self.q is None:
                return None
            pose = np.linalg.inv(self.link_pose(one.link)) @ before.pose
            return rest | {one.name: replace(before, pose=pose, link=one.link, touch=touch, expires=ALWAYS, group="")}
        if before is not None and before.link is None:
            return None
        p, s, frame = one.shapes[0].pose.position, one.shapes[0].scale, one.shapes[0].header.frame_id
        pose = at((p.x, p.y, p.z))
        if frame not in ("", one.link):
            if self.q is None:
                return None
            pose = np.linalg.inv(self.link_pose(one.link)) @ self.link_pose(frame) @ pose
        boxes = ((pose, np.array((s.x, s.y, s.z))),)
        return rest | {one.name: Box(boxes, np.eye(4), Source.SERVICE, link=one.link, touch=touch)}

    def put_down(self, known, name):
        """`known` once a carried object stands where its link has it; None where that cannot be."""
        if known is None or self.q is None or name not in known or not known[name].link:
            return None
        one = known[name]
        rest = {other: each for other, each in known.items() if other != name}
        return rest | {name: replace(one, pose=self.link_pose(one.link) @ one.pose, link=None, touch=())}

    # ---------------------------------------------------------------------------- clouds, the scene as a value

    @rule(seed=SEEDS, camera=st.sampled_from(["points/left", "points/right"]), count=st.integers(0, 6))
    def see(self, seed, camera, count):
        """A cloud takes the place of the one before; one without points removes it."""
        rng = np.random.default_rng(seed)
        cells, pose = np.unique(rng.integers(-4, 4, (count, 3)), axis=0), at(rng.uniform(-0.5, 0.5, 3))
        expires = self.now + 3.0 if count else ALWAYS
        seen = Bricks.of_voxels(camera, cells.reshape(-1, 3), 0.1, np.eye(4))
        known = {name: one for name, one in self.known.items() if name != camera}
        if count:
            boxes = tuple((at(0.1 * cell + 0.05), np.full(3, 0.1)) for cell in cells)
            known[camera] = Box(boxes, pose, Source.CLOUD, expires, voxels=True)
        one = SceneObject(camera, (seen,), pose, Source.CLOUD, expires)
        self.change(self.scene.see, one, known=None if self.too_many(known) else known)

    @precondition(lambda self: self.known)
    @rule(seed=SEEDS, what=st.sampled_from(["move", "append", "remove", "remove a source"]))
    def change_the_value(self, seed, what):
        rng, objects = np.random.default_rng(seed), self.scene.objects
        name, known = str(rng.choice([*self.known])), dict(self.known)
        one, pose, size = known[name], at(rng.uniform(-0.8, 0.8, 3)), rng.uniform(0.05, 0.2, 3)
        if what == "remove":
            del known[name]
            self.change(lambda: self.scene.take(objects.remove(name)), known=known)
        elif what == "remove a source":
            known = {other: each for other, each in known.items() if each.source is not one.source}
            self.change(lambda: self.scene.take(objects.remove_from(one.source)), known=known)
        elif what == "move":
            known[name] = replace(one, pose=pose)
            self.change(lambda: self.scene.take(objects.move(name, pose)), known=None if one.link else known)
        elif not one.voxels:
            known[name] = replace(one, boxes=(*one.boxes, (pose, size)))
            pieces = [ConvexShape.box("more", size, pose)]
            self.change(lambda: self.scene.take(objects.append(name, pieces)), known=None if one.link else known)

    @rule(seed=SEEDS, altogether=st.booleans(), more=st.booleans())
    def allow(self, seed, altogether, more):
        """Names that everything may touch, or pairs of an object and a link, or another object."""
        rng, pairs, allowed = np.random.default_rng(seed), set(self.pairs), set(self.allowed)
        solid = [name for name, one in self.known.items() if not one.voxels] or ["a/0"]
        if altogether:
            allowed = allowed | {str(rng.choice([*self.known, "b/1"]))} if more else set()
        else:
            pair = frozenset((str(rng.choice(solid)), str(rng.choice([*LINKS, *solid]))))
            pairs = pairs | {pair} if more and len(pair) == 2 else set()
        objects = replace(self.scene.objects, allowed_pairs=frozenset(pairs), allowed=frozenset(allowed))
        self.change(self.scene.take, objects, known=self.known, pairs=pairs, allowed=allowed)

    # -------------------------------------------------------------------------------- time, joints, the robot

    @rule(seconds=st.integers(0, 4))
    def time_passes(self, seconds):
        self.now += seconds
        self.scene.forget_expired(self.now)
        self.known = {name: one for name, one in self.known.items() if one.link or one.expires > self.now}

    @rule(by=st.integers(1, 50))
    def the_clock_jumps_back(self, by):
        self.now -= by
        self.scene.clock_jumped_back(by)
        self.known = {name: replace(one, expires=one.expires - by) for name, one in self.known.items()}

    @rule(seed=SEEDS, none=st.sampled_from([False, False, False, True]))
    def joints_are_measured(self, seed, none):
        """none: no joint states have come lately."""
        rng = np.random.default_rng(seed)
        self.q = None if none else rng.uniform(-1.5, 1.5, 3)
        if "slide" in self.bare.other_joints:
            self.slide = float(rng.choice([0.0, 0.1, 0.25]))
            self.scene.follow({"slide": self.slide})
            self.bare = self.bare.with_other_joints({"slide": self.slide})

    @rule(text=st.sampled_from([ROBOT, WITHOUT_FINGER, "<robot"]))
    def another_robot_is_described(self, text):
        """One that lacks a link which carries something is refused, as is a broken text."""
        bare = load_urdf(text, joints=GROUP) if text != "<robot" else None
        needed = {link for one in self.known.values() if one.link for link in (one.link, *one.touch)}
        if text == self.text:
            self.scene.load_robot(text, self.now)
        elif bare is None or not needed <= set(bare.link_names):
            self.change(self.scene.load_robot, text, self.now)
        else:
            slide = 0.0 if "slide" in bare.other_joints else self.slide
            alive = {name: one for name, one in self.known.items() if one.link or one.expires > self.now}
            self.change(self.scene.load_robot, text, self.now, known=alive, text=text, bare=bare, slide=slide)

    # -------------------------------------------------------------------------------------------- comparison

    @invariant()
    def the_scene_is_what_it_should_be(self):
        if hasattr(self, "bare"):
            self.compare(self.scene.objects, self.known, np.random.default_rng(len(self.known)))

    def compare(self, objects, known, rng):
        carried = {name: one for name, one in known.items() if one.link}
        standing = {name: one for name, one in known.items() if not one.link}
        assert set(objects.standing) == set(standing) and set(objects.carried) == set(carried)
        for name, one in known.items():
            there = objects.carried[name] if one.link else objects.standing[name]
            assert there.source is one.source
            np.testing.assert_allclose(there.pose, one.pose, atol=1e-9)
            if one.link:
                assert (there.link, there.touch_links) == (one.link, one.touch)
            else:
                assert (there.expires, there.group) == (one.expires, one.group)
        fresh, owner = self.fresh_checker(known)
        q = rng.uniform(-2.0, 2.0, (12, 3))
        expected = [all(self.may_touch(standing, *pair) for pair in self.pairs_of(fresh, owner, each)) for each in q]
        assert self.scene.checker_for(objects).configurations_valid(q).tolist() == expected

    def fresh_checker(self, known):
        """-> CollisionChecker of all that is known, as if nothing might touch; {shape: its link or object}"""
        robot, world = self.bare, CollisionWorld()
        owner = {shape.name: robot.link_names[link] for shape, link in zip(robot.shapes, robot.shape_link)}
        for name, one in known.items():
            boxes = [ConvexShape.box(f"{name} {k}", size, pose) for k, (pose, size) in enumerate(one.boxes)]
            if one.link:
                before = {shape.name for shape in robot.shapes}
                robot = robot.attach(name, boxes, one.link, one.pose, one.touch)
                owner |= {shape.name: name for shape in robot.shapes if shape.name not in before}
            else:
                placed = [
                    ConvexShape.box(f"{name} {k}", size, one.pose @ pose) for k, (pose, size) in enumerate(one.boxes)
                ]
                world.add_shapes(name, placed)
                owner |= {shape.name: name for shape in placed}
        return CollisionChecker(robot, world, "cpu"), owner

    def pairs_of(self, checker, owner, q):
        return [(owner[one], owner[other]) for one, other in checker.colliding_pairs(q)]

    def may_touch(self, standing, *names):
        return frozenset(names) in self.pairs or bool(set(names) & set(standing) & self.allowed)


TestScene = driven(Scene, sequences=10, steps=25)
