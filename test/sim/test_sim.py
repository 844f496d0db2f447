"""Physics: MuJoCo finds the contacts that the checker finds, and none while planned motions are executed."""

import numpy as np
import pytest
from robots_at_hand import checker_among, problem_of

pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'gpu_planners[sim]'")

from gpu_planners.arm import CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.sim.simulation import Simulation

FOLLOWED = 1e-3  # rad: how closely joints follow

GRIPPER = """<robot name="gripper"><link name="a"/><link name="b"/>
  <link name="left"><collision><geometry><box size="0.02 0.02 0.1"/></geometry></collision></link>
  <link name="right"><collision><geometry><cylinder radius="0.01" length="0.1"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="2" effort="1"/></joint>
  <joint name="open" type="prismatic"><parent link="b"/><child link="left"/><origin xyz="0.2 0 0"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.3" velocity="1" effort="1"/></joint>
  <joint name="follow" type="prismatic"><parent link="b"/><child link="right"/><origin xyz="-0.2 0 0"/>
    <axis xyz="-1 0 0"/><limit lower="0" upper="0.3" velocity="1" effort="1"/><mimic joint="open" offset="0.05"/>
  </joint></robot>"""


@pytest.mark.parametrize("robot, family", [("panda", "shelf"), ("ur5", "table")])
def test_both_call_the_same_configurations_free(robot, family):
    rig, problem = problem_of(robot, family)
    checker = checker_among(rig.model, problem)
    simulation = Simulation(rig.model, checker.world)
    q = np.random.default_rng(0).uniform(rig.model.lower, rig.model.upper, (100, rig.model.dof))
    valid = checker.configurations_valid(q)
    assert 0 < valid.sum() < len(q)
    for each, free in zip(q, valid, strict=True):
        simulation.reset(each)
        assert bool(simulation.contacts) != free, simulation.contacts


@pytest.mark.parametrize("robot, family", [("panda", "shelf"), ("ur5", "table")])
def test_a_planned_motion_touches_nothing(robot, family):
    rig, problem = problem_of(robot, family)
    checker = checker_among(rig.model, problem)
    result = rrt_connect.solve(problem.start, problem.goals, checker, seed=0)
    assert result.solved
    motion = time_parameterize(result.path, rig.model.velocity, rig.model.acceleration)
    executed = Simulation(rig.model, checker.world).execute(Spline.of(motion))
    assert not executed.contacts and executed.error < FOLLOWED
    assert np.allclose(executed.positions, result.path[-1], atol=FOLLOWED)


def test_what_is_in_the_way_is_touched():
    robot = load_urdf(GRIPPER)
    world = CollisionWorld()
    world.add_sphere("ball", 0.05, np.block([[np.eye(3), np.array([[0.0], [0.3], [0.0]])], [np.zeros(3), 1]]))
    motion = time_parameterize([[0.0, 0.1], [2.0, 0.1]], robot.velocity, robot.acceleration)
    executed = Simulation(robot, world).execute(Spline.of(motion))
    assert {contact[1:3] for contact in executed.contacts} == {("world/ball", "robot/left_0")}
    assert executed.contacts[0].depth > 0


def test_joints_that_mimic_others_follow_them():
    robot = load_urdf(GRIPPER, joints=["turn", "open"])
    motion = time_parameterize([[0.0, 0.0], [1.0, 0.2]], robot.velocity, robot.acceleration)
    simulation = Simulation(robot, CollisionWorld())
    simulation.execute(Spline.of(motion))
    body = simulation.data.body("frame/follow")
    expected = robot.frame_poses([1.0, 0.2])[0, robot.frame_names.index("follow"), :3, 3]
    assert np.allclose(body.xpos, expected, atol=FOLLOWED) and np.linalg.norm(expected) > 0.4
