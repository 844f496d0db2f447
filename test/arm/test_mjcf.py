"""MJCF: kinematics and collisions against MuJoCo's own."""

import numpy as np
import pytest

from gpu_planners.arm import CollisionChecker, CollisionWorld, SceneBatch, load_mjcf, mjcf_obstacles
from gpu_planners.errors import ObstacleError, RobotDescriptionError, SettingsError

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'gpu_planners[sim]'")

# in the manner of mujoco's menagerie: defaults, anchors beside the origin, a reference, several joints of a body, a
# gripper of two fingers, visual geoms, a mesh, an exclusion, keyframes; and beside it a cabinet, a cup, a floor
ARM = """
<mujoco model="arm">
  <compiler angle="radian" autolimits="true"/>
  <default>
    <joint range="-2.5 2.5"/>
    <geom contype="1" conaffinity="1"/>
    <default class="visual"><geom contype="0" conaffinity="0" group="2"/></default>
  </default>
  <asset>
    <mesh name="wedge" vertex="0 0 0  0.1 0 0  0 0.08 0  0 0 0.12  0.05 0.05 0.1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" pos="0 0 -0.3"/>
    <geom name="wall" type="box" size="0.02 0.5 0.5" pos="-0.6 0 0.3" euler="0 0 0.3"/>
    <body name="base" pos="0.1 0 0.1" euler="0 0 0.4">
      <geom type="cylinder" size="0.08 0.05"/>
      <geom class="visual" type="sphere" size="0.5"/>
      <body name="shoulder" pos="0 0 0.1">
        <joint name="pan" axis="0 0 1" pos="0.02 0.01 0" ref="0.2"/>
        <joint name="lift" axis="0 1 0" pos="0 0 0.03"/>
        <geom type="capsule" size="0.04 0.1" pos="0 0 0.12"/>
        <body name="forearm" pos="0 0 0.3" quat="0.9 0.1 0.3 0.2">
          <joint name="slide" type="slide" axis="0 0 2" range="-0.05 0.15" ref="0.03"/>
          <joint name="roll" axis="0.3 0.1 1" limited="false"/>
          <geom type="ellipsoid" size="0.04 0.05 0.1" pos="0 0 0.1"/>
          <body name="hand" pos="0 0 0.22">
            <geom type="mesh" mesh="wedge" euler="0.3 0.2 0.1"/>
            <body name="left" pos="0.03 0 0.14">
              <joint name="finger" type="slide" axis="1 0 0" range="0 0.04"/>
              <geom type="box" size="0.01 0.01 0.03"/>
            </body>
            <body name="right" pos="-0.03 0 0.14">
              <joint name="other" type="slide" axis="-1 0 0" range="-1 1" ref="0.01"/>
              <geom type="box" size="0.01 0.01 0.03"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body name="cabinet" pos="0.7 0.4 0">
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="door" pos="0 -0.12 0"><joint name="door" axis="0 0 1"/><geom type="box" size="0.1 0.01 0.1"/></body>
    </body>
    <body name="cup" pos="0.3 0.2 0.3">
      <freejoint/><geom type="cylinder" size="0.04 0.06"/><geom size="0.03" pos="0 0 0.1"/>
    </body>
  </worldbody>
  <contact><exclude body1="hand" body2="shoulder"/></contact>
  <equality><joint joint1="other" joint2="finger" polycoef="0.002 0.5 0 0 0"/></equality>
  <keyframe><key name="home" qpos="0.5 -0.4 0.1 1.0 0.02 0.022 0 0.3 0.2 0.3 1 0 0 0"/></keyframe>
</mujoco>
"""
PLANNED = ("pan", "lift", "slide", "roll", "finger")


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(ARM)


def at(model, robot, q):
    """MjData of a configuration of the robot: followers too."""
    data = mujoco.MjData(model)
    for name, value in zip(robot.joint_names, q):
        data.qpos[model.joint(name).qposadr[0]] = value
    lead = data.qpos[model.joint("finger").qposadr[0]]
    data.qpos[model.joint("other").qposadr[0]] = 0.01 + 0.002 + 0.5 * lead
    mujoco.mj_forward(model, data)
    return data


def random_q(robot, count):
    return np.random.default_rng(0).uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3), (count, robot.dof))


def test_bodies_are_where_mujoco_has_them(model):
    robot = load_mjcf(model, joints=PLANNED)
    assert robot.name == "arm" and robot.joint_names == PLANNED and robot.mimic_joints == ("other",)
    assert np.allclose(robot.lower[:3], [-2.5, -2.5, -0.05]) and robot.continuous.tolist() == [False] * 3 + [
        True,
        False,
    ]
    q = random_q(robot, 50)
    poses = robot.link_poses(q)
    assert set(poses) >= {"world", "base", "shoulder", "forearm", "hand", "left", "right"}
    assert not {"cabinet", "door", "cup"} & set(poses)
    for k, one in enumerate(q):
        data = at(model, robot, one)
        for name in ("base", "shoulder", "forearm", "hand", "left", "right"):
            assert np.allclose(poses[name][k, :3, 3], data.body(name).xpos, atol=1e-12)
            assert np.allclose(poses[name][k, :3, :3], data.body(name).xmat.reshape(3, 3), atol=1e-12)
    home = robot.named_states["home"]
    assert np.allclose(home, [0.5, -0.4, 0.1, 1.0, 0.02])


def test_joints_that_are_not_planned_stand_at_their_reference(model):
    robot = load_mjcf(ARM, joints=("lift", "roll"), fixed={"finger": 0.03})
    data = mujoco.MjData(model)
    data.qpos[model.joint("lift").qposadr[0]], data.qpos[model.joint("roll").qposadr[0]] = 0.7, -1.1
    data.qpos[model.joint("finger").qposadr[0]] = 0.03
    data.qpos[model.joint("other").qposadr[0]] = 0.01 + 0.002 + 0.5 * 0.03
    mujoco.mj_kinematics(model, data)
    poses = robot.link_poses(np.array([[0.7, -1.1]]))
    for name in ("hand", "left", "right"):
        assert np.allclose(poses[name][0, :3, 3], data.body(name).xpos, atol=1e-12)


def test_inertias_are_read(model):
    robot = load_mjcf(model, joints=PLANNED)
    masses = dict(zip(robot.link_names, robot.link_inertia[:, 3, 3]))
    for name in ("base", "shoulder", "hand", "left"):
        assert np.isclose(masses[name], model.body(name).mass[0])


def colliding(model, robot, data):
    """Does MuJoCo find a contact of two bodies of the robot, or of one with an obstacle? None: too close to say."""
    worst = 1.0
    for contact in data.contact[: data.ncon]:
        bodies = [model.body(int(model.geom_bodyid[g])).name for g in contact.geom]
        if any(name in robot.link_names and name != "world" for name in bodies):
            worst = min(worst, float(contact.dist))
    return None if abs(worst) < 2e-3 else worst < 0


def test_collisions_are_mujocos(model):
    robot = load_mjcf(model, joints=PLANNED)
    world = mjcf_obstacles(model, robot)
    assert set(world.names) == {"floor", "wall", "cabinet", "door", "cup"}
    checker, q = CollisionChecker(robot, world, "cpu"), random_q(robot, 400)
    skipped = {frozenset(pair[:2]) for pair in robot.disabled_pairs}
    assert frozenset(("hand", "shoulder")) in skipped and frozenset(("base", "hand")) not in skipped
    free, counts, worlds = checker.configurations_valid(q), [0, 0], 0
    for one, valid in zip(q, free):
        data = at(model, robot, one)
        found = colliding(model, robot, data)
        if found and not valid:
            counts[1] += 1
        elif found is False and valid:
            counts[0] += 1
        elif found:  # only pairs that are not checked may meet
            for contact in data.contact[: data.ncon]:
                names = frozenset(model.body(int(model.geom_bodyid[g])).name for g in contact.geom)
                assert contact.dist > -2e-3 or names in skipped or not names & set(robot.link_names) - {"world"}
        elif found is False:
            worlds += 1  # the polyhedron around the ellipsoid sticks out by less than a hundredth
    assert min(counts) > 20 and worlds < 8


def test_what_stands_beside_the_first_joint_is_in_the_way():
    """As in MuJoCo, which filters no pairs of what stands on the world."""
    text = """
    <mujoco><compiler angle="radian"/><worldbody><body name="table">
      <geom type="box" size="0.5 0.5 0.05" pos="0 0 -0.1"/>
      <body name="shelf" pos="0.5 0 0"><geom type="box" size="0.05 0.3 0.3"/></body>
      <body name="pedestal"><geom type="cylinder" size="0.06 0.05"/>
        <body name="arm"><joint name="turn" axis="0 0 1" range="-3 3"/>
          <geom type="box" size="0.3 0.04 0.04" pos="0.3 0 0.05"/></body></body>
    </body></worldbody></mujoco>"""
    checker = CollisionChecker(load_mjcf(text), CollisionWorld(), "cpu")
    q = np.linspace(-3, 3, 61)[:, None]
    mj = mujoco.MjModel.from_xml_string(text)
    data, shelf, arm = (
        mujoco.MjData(mj),
        *(mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_BODY, n) for n in ("shelf", "arm")),
    )
    met = []
    for data.qpos[:] in q:
        mujoco.mj_forward(mj, data)
        met.append(any({*mj.geom_bodyid[contact.geom]} == {shelf, arm} for contact in data.contact))
    assert 0 < sum(met) < 61 and checker.configurations_valid(q).tolist() == [not hit for hit in met]


def test_worlds_of_mujoco_are_scenes_of_a_batch(model):
    robot = load_mjcf(model, joints=PLANNED)
    batch = SceneBatch(robot, mjcf_obstacles(model, robot), 5, "cpu", moving=["cup"])
    rng, poses, q = (
        np.random.default_rng(2),
        np.tile([0.0, 0, 0, 1, 0, 0, 0], (5, 1, 1)),
        random_q(robot, 5 * 30).reshape(5, 30, -1),
    )
    data, cup = mujoco.MjData(model), model.jnt_qposadr[-1]
    for e in range(5):
        data.qpos[cup : cup + 3], data.qpos[cup + 3 : cup + 7] = rng.uniform(0, 0.5, 3), rng.normal(size=4)
        mujoco.mj_kinematics(model, data)
        poses[e, 0] = np.concatenate([data.body("cup").xpos, data.body("cup").xquat])
        world = mjcf_obstacles(model, robot, data.qpos)
        batch.set_poses(poses)
        assert np.array_equal(
            batch.configurations_valid(q)[e], CollisionChecker(robot, world, "cpu").configurations_valid(q[e])
        )


def test_files_and_texts(tmp_path, model):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    by_path = load_mjcf(path, joints=PLANNED)
    assert by_path.link_names == load_mjcf(model, joints=PLANNED).link_names
    assert load_mjcf(ARM, joints=PLANNED, hull_tolerance=0.01).dof == 5
    assert load_mjcf(ARM).joint_names == (*PLANNED, "door")


def with_body(inner, rest=""):
    return f'<mujoco><worldbody><body name="a">{inner}</body></worldbody>{rest}</mujoco>'


HINGE = '<joint name="j"/><geom size="0.1"/>'
BELOW = '<body name="b" pos="0.3 0 0"><joint name="k"/><geom size="0.1"/></body>'


@pytest.mark.parametrize(
    "text, what",
    [
        (with_body('<joint name="j" type="ball"/><geom size="0.1"/>' + BELOW), "'j' of body 'a' is a ball joint"),
        (with_body('<freejoint name="base"/><geom size="0.1"/>' + BELOW), "'base' is floating and carries"),
        (with_body(HINGE + '<geom name="g" type="plane" size="1 1 1"/>'), "plane"),
        (
            with_body(HINGE + BELOW, '<equality><joint joint1="k" joint2="j" polycoef="0 1 0.5 0 0"/></equality>'),
            "'k': the equality that couples it to 'j' is not linear",
        ),
        (
            with_body(HINGE + BELOW, '<equality><connect body1="b" body2="world" anchor="0 0 0"/></equality>'),
            "ties 'b' and 'world'",
        ),
        (with_body('<geom size="0.1"/>'), "no joint to plan"),
        (with_body("<nonsense/>"), "MuJoCo does not read"),
        ("/nowhere.xml", "nowhere"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(text, what):
    with pytest.raises(RobotDescriptionError, match=what):
        load_mjcf(text)


def test_arguments():
    for joints, what in ((["x"], "no joint 'x'"), (["other"], "follows 'finger'"), ([], "no joint to plan")):
        with pytest.raises(RobotDescriptionError, match=what):
            load_mjcf(ARM, joints=joints)
    with pytest.raises(SettingsError):
        load_mjcf(ARM, hull_tolerance="x")
    robot = load_mjcf(ARM, joints=PLANNED)
    with pytest.raises(ObstacleError, match="qpos"):
        mjcf_obstacles(ARM, robot, [0.0])
    held = with_body(HINGE + BELOW, '<equality><joint joint1="k" polycoef="0.3 0 0 0 0"/></equality>')
    robot = load_mjcf(held)
    assert robot.joint_names == ("j",)
    model = mujoco.MjModel.from_xml_string(held)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.2, 0.3
    mujoco.mj_kinematics(model, data)
    assert np.allclose(robot.link_poses([[0.2]])["b"][0, :3, :3], data.body("b").xmat.reshape(3, 3))
