"""A robot with another group of its SRDF to plan: as load_urdf has it, and as pinocchio and coal see it."""

import numpy as np
import pytest
from panda_files import ARM, FINGER, SRDF, URDF
from pinocchio_poses import pinocchio_poses
from robots_at_hand import groups_of, maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.urdf import loader
from gpu_planners.errors import RobotDescriptionError

SAME = (  # fields that two models of one group share
    *("name", "root_link", "joint_names", "link_names", "frame_names", "tip_link", "tip_reason"),
    *("other_joints", "mimic_joints", "groups", "touching_pairs", "disabled_pairs", "attached", "allowed_pairs"),
)
ARRAYS = (
    *("lower", "upper", "velocity", "acceleration", "continuous", "frames", "T_parent_base", "link_frame"),
    *("T_frame_link", "shape_link", "shape_frame", "self_collision_pairs"),
)


def assert_same(one, other):
    for name in SAME:
        assert getattr(one, name) == getattr(other, name), name
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for a, b in zip(one.shapes, other.shapes, strict=True):
        assert a.name == b.name and np.array_equal(a.pose, b.pose) and np.array_equal(a.vertices, b.vertices)
    assert one.named_states.keys() == other.named_states.keys()
    assert all(np.array_equal(one.named_states[state], q) for state, q in other.named_states.items())


@pytest.mark.parametrize(
    ("robot", "group", "others"),
    [("panda", "arm", ("hand", "arm_and_hand")), ("baxter", "right_arm", ("left_arm", "both_arms", "wrists"))],
)
def test_it_is_the_robot_that_load_urdf_has_for_the_group(robot, group, others, monkeypatch):
    files = groups_of(robot)
    loaded, wanted = load_urdf(group=group, **files), [load_urdf(group=other, **files) for other in others]
    monkeypatch.setattr(loader, "load_mesh", None)  # no mesh is read again
    for other, expected in zip(others, wanted):
        assert_same(loaded.of_group(other), expected)
        assert_same(loaded.of_group(other).of_group(group), loaded)
    fixed = dict.fromkeys(loaded.joint_names[:1], 0.01)
    assert_same(loaded.of_group(others[0], fixed), wanted[0].with_other_joints(fixed))


def test_an_arm_is_checked_against_the_other_one_wherever_that_stands():
    """By coal, which reads the same files: the left arm of a Baxter while the right one reaches over to its side."""
    files, rng, rig = groups_of("baxter"), np.random.default_rng(3), maker_of("baxter").rig
    right, scene = load_urdf(group="right_arm", **files), rig.coal_scene([])
    left, differs = right.of_group("left_arm"), 0
    joints = [*right.joint_names, *left.joint_names]
    order = [joints.index(joint) for joint in rig.model.joint_names]

    def distance(stands, q):
        return scene.distance(np.r_[stands, q][order])

    drawn = rng.uniform(right.lower, right.upper, (400, right.dof))
    reaching = drawn[right.link_poses(drawn)["right_gripper"][:, 1, 3] > 0.2]
    away = np.clip([0, 1.0, 0, 0, 0, 0, 0], left.lower, left.upper)
    for stands in [stands for stands in reaching if distance(stands, away) > 0][:5]:
        placed = left.with_other_joints(dict(zip(right.joint_names, stands.tolist())))
        q = rng.uniform(left.lower, left.upper, (100, left.dof))
        far = np.array([distance(stands, row) for row in q])
        free = CollisionChecker(placed, CollisionWorld(), "cpu").configurations_valid(q)
        assert (free == (far > 0))[abs(far) > 1e-4].all()
        elsewhere = CollisionChecker(left, CollisionWorld(), "cpu").configurations_valid(q)
        differs += int((free != elsewhere).sum())
    assert differs > 5  # it matters where the other arm stands


def test_links_stand_where_the_other_joints_are():
    panda = load_urdf(URDF, srdf=SRDF, group="panda_arm")
    q, fingers = np.linspace(-0.5, 0.9, 7) - [0, 0, 0, 2, 0, -1, 0], np.array([[0.013]])
    hand = panda.of_group("hand", dict(zip(ARM, q.tolist())))
    assert hand.joint_names == (FINGER,) and hand.tip_link == "panda_leftfinger"
    expected = pinocchio_poses(URDF, [*ARM, FINGER], [[*q, 0.013]])
    for link, T in hand.link_poses(fingers).items():
        assert np.allclose(T, expected[link], atol=1e-9), link
    assert sorted(hand.named_states) == ["close", "open"] and sorted(panda.named_states) == ["extended", "ready"]


def test_what_is_carried_and_allowed_goes_along():
    cup = ConvexShape.box("cup", [0.05, 0.05, 0.2], np.eye(4))
    panda = load_urdf(URDF, srdf=SRDF, group="panda_arm")
    carrying = panda.attach("cup", cup, "panda_hand").attach("lid", cup, "panda_link0")
    carrying = carrying.allow_collisions([("cup", "panda_leftfinger"), ("lid", "cup"), ("cup", "panda_link3")])
    hand = carrying.of_group("hand")
    assert_same(hand.of_group("panda_arm"), carrying)
    names = [shape.name for shape in hand.shapes]
    checked = {frozenset((names[a], names[b])) for a, b in hand.self_collision_pairs}
    assert {"cup", "panda_rightfinger_0"} in checked and {"cup", "panda_leftfinger_0"} not in checked
    again = carrying.detach("cup").attach("cup", cup, "panda_hand")  # what is allowed went with it
    assert again.allowed_pairs == () and again.of_group("hand").allowed_pairs == ()


def test_limits_that_were_given_hold_for_the_joints_that_they_name():
    panda = load_urdf(URDF, srdf=SRDF, group="panda_arm", velocity=np.arange(1, 8) / 10, acceleration=3.0)
    whole = panda.of_group("panda_arm_hand")
    assert whole.velocity[:7].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7] and whole.velocity[7] == 0.2
    assert (whole.acceleration == 3.0).all() and panda.of_group("hand").acceleration == [3.0]


def test_states_of_one_name_are_those_of_the_group():
    more = '<group_state group="panda_arm_hand" name="ready">' + "".join(
        f'<joint name="{joint}" value="0.02"/>' for joint in [*ARM, FINGER]
    )
    panda = load_urdf(URDF, srdf=SRDF.replace("</robot>", f"{more}</group_state></robot>"), group="panda_arm")
    assert panda.named_states["ready"][1] == -0.785
    assert panda.of_group("panda_arm_hand").named_states["ready"].tolist() == [0.02] * 8


def test_passive_joints_are_never_planned():
    srdf = SRDF.replace("</robot>", '<passive_joint name="panda_joint7"/></robot>')
    panda = load_urdf(URDF, srdf=srdf)  # several groups: all joints that move
    assert panda.joint_names == (*ARM[:6], FINGER) and "panda_joint7" in panda.other_joints
    assert panda.of_group("panda_arm").joint_names == tuple(ARM[:6])
    turned = panda.of_group("hand", {"panda_joint7": 0.4})
    expected = pinocchio_poses(URDF, [*ARM[:6], "panda_joint7"], [[*np.zeros(3), -0.0, 0.0, 0.0, 0.4]])
    assert np.allclose(turned.link_poses([0.0])["panda_link7"][0], expected["panda_link7"][0], atol=1e-9)


def test_groups_that_cannot_be_planned_are_named():
    more = '<group name="still"><link name="panda_link8"/></group><group name="odd"><joint name="wheel"/></group>'
    panda = load_urdf(URDF, srdf=SRDF.replace("</robot>", f"{more}</robot>"), group="panda_arm")
    for group, texts in (
        ("nonsense", ("no group 'nonsense'", "panda_arm_hand", "hand")),
        ("still", ("group 'still' has no joint to plan",)),
        ("odd", ("'wheel'", "the URDF does not have")),
    ):
        with pytest.raises(RobotDescriptionError) as error:
            panda.of_group(group)
        assert all(text in str(error.value) for text in texts)
    with pytest.raises(RobotDescriptionError, match="no SRDF was given"):
        load_urdf(URDF).of_group("hand")
    with pytest.raises(RobotDescriptionError, match="panda_finger_joint1"):
        panda.of_group("hand", {FINGER: 0.01})
