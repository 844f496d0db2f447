"""The scene as a value: what may touch, what moves, and that a refused change leaves nothing behind."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from random_urdf import random_urdf

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.geometry.bricks import Bricks
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import ObstacleError
from gpu_planners.nodes.arm.in_hands import grips, in_hands, refuse, torn, torn_by
from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.arm.scene_objects import CarriedObject, SceneObject, SceneObjects, Source


@pytest.fixture(scope="module")
def robot():
    return load_urdf(random_urdf(np.random.default_rng(2), 6, shapes=True))


def at(x, y=0.0, z=0.0):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def thing(name, T, size=0.5, source=Source.SERVICE):
    return SceneObject(name, (ConvexShape.box("b", [size] * 3, np.eye(4)),), T, source)


def free(objects, robot, q):
    return CollisionChecker(objects.robot(robot), objects.world, "cpu").configurations_valid(q)


def allowing(objects, a, b):
    return replace(objects, allowed_pairs=objects.allowed_pairs | {frozenset((a, b))})


def test_only_those_that_are_allowed_may_touch(robot):
    """An object that a link may touch: as a world in which only that link is checked against it would say."""
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.lower, robot.upper, (1500, robot.dof))
    moving = [i for i, frame in enumerate(robot.shape_frame) if frame >= 0]
    box, world = thing("box", at(0.5, 0.3, 0.2)), CollisionWorld()
    world.add_box("box", [0.5] * 3, box.pose)
    checker = CollisionChecker(robot, world, "cpu")
    met = next(pairs[0][0] for pairs in map(checker.colliding_pairs, q) if pairs and pairs[0][1] == "box")
    link = next(robot.link_names[i] for shape, i in zip(robot.shapes, robot.shape_link) if shape.name == met)
    alone = CollisionChecker(robot, CollisionWorld(), "cpu").configurations_valid(q)
    own = {robot.shapes[i].name for i in moving if robot.link_names[robot.shape_link[i]] == link}
    expected = [
        not any(not (other == "box" and shape in own) for shape, other in checker.colliding_pairs(one))
        for one in q[:300]
    ]
    objects = SceneObjects().add(box)
    assert (free(objects, robot, q) == checker.configurations_valid(q)).all()
    assert free(allowing(objects, "box", link), robot, q[:300]).tolist() == expected
    assert any(expected != checker.configurations_valid(q[:300]))
    assert (free(replace(objects, allowed=frozenset({"box"})), robot, q) == alone).all()
    back = replace(allowing(objects, "box", link), allowed_pairs=frozenset())
    assert (free(back, robot, q) == checker.configurations_valid(q)).all() and back.robot(robot) is robot


def test_objects_are_added_moved_taken_up_and_put_down(robot):
    link = robot.link_names[-1]
    objects = SceneObjects().add(thing("a", at(1)), thing("b", at(2)))
    moved = objects.move("a", at(3)).append("a", [ConvexShape.sphere("s", 0.1, at(0, 1))])
    assert [shape.name for shape in moved.world.shapes] == ["a#0", "a#1", "b"]
    assert np.allclose(moved.world.shapes[1].pose, at(3, 1)) and np.allclose(objects.world.shapes[0].pose, at(1))
    taken = moved.attach("a", link, at(0, 0, 1))
    assert taken.world.names == ("b",) and taken.robot(robot).attached == ("a",)
    put = taken.detach("a", at(0, 0, 2))
    assert np.allclose(put.standing["a"].pose, at(3, 0, 1)) and put.carried == {}
    assert put.remove("a", "b").names == () and taken.remove_from(Source.SERVICE).names == ()
    assert taken.remove_from(Source.FILE).names == taken.names
    mortal = objects.add(SceneObject("c", (), np.eye(4), Source.MARKERS, expires=5.0))
    assert mortal.without_expired(4.9) is mortal and mortal.without_expired(5.0).names == ("a", "b")


def test_changes_that_cannot_be_are_named(robot):
    voxels = SceneObject("v", (Bricks.of_voxels("v", [[0, 0, 0]], 0.1, np.eye(4)),), np.eye(4), Source.CLOUD)
    objects = SceneObjects().add(thing("a", at(1)), voxels).attach("a", robot.link_names[-1], np.eye(4))
    for change, words in [
        (lambda: objects.add(thing("a", at(0))), "'a' is attached to link"),
        (lambda: objects.add(thing("", at(0))), "no name"),
        (lambda: objects.add(thing("x", np.zeros((4, 4)))), "'x'.*rigid"),
        (lambda: objects.move("a", at(0)), "'a' stands.*attached to"),
        (lambda: objects.append("x", []), "'x' stands"),
        (lambda: objects.remove("x"), "'x'.*'v', 'a'"),
        (lambda: objects.detach("v", at(0)), "'v'; attached: 'a'"),
        (lambda: objects.attach("v", robot.link_names[-1], at(0)), "'v' is made of voxels"),
        (lambda: objects.attach_new(CarriedObject("v", (), "l", at(0), (), Source.SERVICE)), "'v' stands"),
        (lambda: objects.attach_new(CarriedObject("w", (), "l", at(0), (), Source.SERVICE)), "'w'.*shape"),
        (lambda: allowing(objects, "v", robot.link_names[1]).robot(robot), "'v' is made of voxels"),
    ]:
        with pytest.raises(ObstacleError, match=words):
            change()
    assert objects.names == ("v", "a")


def test_what_two_hands_hold_is_not_torn_apart():
    """Joints below both hands may move; those of one arm may not."""
    arm = """<link name="{0}"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
      <joint name="{0}_joint" type="revolute"><parent link="carriage"/><child link="{0}"/><origin xyz="0 {1} 0.5"/>
      <axis xyz="0 0 1"/><limit lower="-2" upper="2" velocity="2" effort="1"/></joint>"""
    urdf = f"""<robot name="pair"><link name="floor"/><link name="carriage"/>
      <joint name="rail" type="prismatic"><parent link="floor"/><child link="carriage"/><axis xyz="1 0 0"/>
      <limit lower="0" upper="1" velocity="1" effort="1"/></joint>{arm.format("left", 0.5)}{arm.format("right", -0.5)}
      </robot>"""
    bar = (ConvexShape.box("bar", [0.1, 1.0, 0.1], np.eye(4)),)
    one = CarriedObject("bar", bar, "left", at(0), ("right",), Source.SERVICE, held_by=("right",))
    objects = SceneObjects().attach_new(one)
    rail, left, both = load_urdf(urdf, joints=["rail"]), load_urdf(urdf, joints=["rail", "left_joint"]), load_urdf(urdf)
    assert torn(objects, rail) == "" and not grips(objects, rail)
    assert "'bar' is held by 'left' and 'right', which left_joint move" in torn(objects, left)
    with pytest.raises(ObstacleError, match="left_joint move.*a sequence keeps no object in two hands"):
        refuse(objects, left, "a sequence")
    assert torn(objects, both) == ""  # motions of both keep it in both hands
    (rule,) = in_hands(objects, both, np.array([0.2, 0.1, -0.1]), ArmParameters()).rules
    assert (rule.link, rule.other) == ("left", "right")
    assert rule.satisfied([[0.9, 0.1, -0.1], [0.2, 0.1, 0.1]]).tolist() == [True, False]
    assert not grips(SceneObjects().attach_new(replace(one, held_by=())), both)
    checker = CollisionChecker(both, CollisionWorld(), "cpu")
    for end, text in (([0.9, 0.1, -0.1], ""), ([0.2, 0.1, 0.0], "'left' and 'right', whose pose to each other")):
        path = np.array([[0.2, 0.1, -0.1], end])
        curve = Spline.of(time_parameterize(path, both.velocity, both.acceleration))
        told = torn_by(curve, 0.0, objects, checker, ArmParameters())
        assert told == "" if not text else text in told


def test_a_hand_that_moveit_lets_touch_holds_where_both_arms_are_planned():
    """Its messages do not say who holds an object."""
    link = '<link name="{0}"/><joint name="{0}_joint" type="revolute"><parent link="{1}"/><child link="{0}"/>'
    link += '<axis xyz="0 0 1"/><origin xyz="0.1 0 0"/><limit lower="-2" upper="2" velocity="2" effort="1"/></joint>'
    parts = [("left", "floor"), ("left_hand", "left"), ("right", "floor"), ("right_hand", "right")]
    urdf = f'<robot name="pair"><link name="floor"/>{"".join(link.format(*part) for part in parts)}</robot>'
    bar = (ConvexShape.box("bar", [0.1, 1.0, 0.1], np.eye(4)),)
    one = CarriedObject("bar", bar, "left_hand", at(0), ("left", "floor", "right", "right_hand"), Source.MOVEIT)
    objects, both = SceneObjects().attach_new(one), load_urdf(urdf)
    (grip,) = grips(objects, both)
    assert grip.other == "right_hand" and grip.others == ("right_joint", "right_hand_joint")
    alone = load_urdf(urdf, joints=["left_joint", "left_hand_joint"])
    assert not grips(objects, alone) and torn(objects, alone) == ""  # a hand may leave what it only touches
    assert not grips(SceneObjects().attach_new(replace(one, touch_links=("left", "floor"))), both)
    assert not grips(SceneObjects().attach_new(replace(one, source=Source.SERVICE)), both)
