"""The service ~/plan_sequence over real DDS, with a gantry: lines, free motions, and the codes of what fails."""

import numpy as np
import pytest
from geometry_msgs.msg import Vector3Stamped
from node_harness import RunningNode, joints, marker, pose_goal
from running_node import shared
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.common.ros import seconds
from gpu_planners.share import share_folder
from gpu_planners_msgs.msg import MotionSegment
from gpu_planners_msgs.srv import PlanSequence

GANTRY = (share_folder() / "urdf" / "gantry.urdf").read_text()
JOINTS = ["along_x", "along_y", "down", "wrist_turn", "wrist_bend", "wrist_roll"]
START = np.array([0.5, 0.0, 0.3, 0.1, 0.4, 0.0])
Response = PlanSequence.Response


class RunningGantry(RunningNode):
    def __init__(self):
        super().__init__(GANTRY, joints=JOINTS)
        self.sequence = self.client_node.create_client(PlanSequence, "/arm_planner/plan_sequence")
        assert self.sequence.wait_for_service(10)

    def plan_sequence(self, *segments, **fields):
        fields = {"start": joints(START, JOINTS)} | fields
        return self.call(self.sequence, PlanSequence.Request(segments=list(segments), **fields))


node_of_module, running = shared(RunningGantry)
ROBOT = load_urdf(GANTRY, joints=JOINTS)


def line(vector, frame="", **fields):
    translation = Vector3Stamped()
    translation.header.frame_id = frame
    translation.vector.x, translation.vector.y, translation.vector.z = map(float, vector)
    return MotionSegment(kind=MotionSegment.LINE, translation=translation, **fields)


UP = line([0, 0, 0.1]).translation


def free(*goals, **fields):
    return MotionSegment(kind=MotionSegment.FREE, joint_goals=[joints(goal, JOINTS) for goal in goals], **fields)


def tips(response):
    q = np.array([point.positions for point in response.trajectory.points])
    return ROBOT.link_poses(q)[ROBOT.tip_link]


def test_lines_and_free_motions_make_one_trajectory(running):
    assert running.set_parameter("publish_trajectories", True).successful
    sent = running.received(JointTrajectory, "/arm_planner/joint_trajectory")
    goal = START + [0.6, 0.3, 0.2, 0.5, 0.2, 0.3]
    response = running.plan_sequence(
        line([0, 0, -0.2], blend_radius=0.05), free(goal, blend_radius=0.05), line([0, 0.1, 0.1], velocity_scaling=0.5)
    )
    assert response.code == Response.SUCCESS, response.message
    assert response.fraction == 1 and response.planning_time_s > 0 and "3 of 3" in response.message
    points, ends = response.trajectory.points, list(response.segment_ends_s)
    times = [seconds(point.time_from_start) for point in points]
    assert times[0] == 0 and (np.diff(times) > 0).all() and np.isclose(ends[2], times[-1]) and sorted(ends) == ends
    assert not any(points[0].velocities) and not any(points[-1].velocities)
    moving = [point for point in points[1:-1] if np.linalg.norm(point.velocities) < 1e-9]
    assert not moving  # no stop on the way
    poses, first = tips(response), ROBOT.link_poses(START)[ROBOT.tip_link][0]
    assert np.allclose(poses[0], first)
    running.wait_until(lambda: sent)
    assert sent[-1] == response.trajectory


def test_a_line_along_the_tool_and_one_to_a_pose(running):
    first = ROBOT.link_poses(START)[ROBOT.tip_link][0]
    response = running.plan_sequence(line([0, 0, 0.1], ROBOT.tip_link))
    assert response.code == Response.SUCCESS, response.message
    assert np.allclose(tips(response)[-1][:3, 3], first[:3, 3] + 0.1 * first[:3, 2], atol=1e-6)
    goal = pose_goal(first[:3, 3] + [0.1, 0.1, 0.0], "", Rotation.from_matrix(first[:3, :3]).as_quat())
    response = running.plan_sequence(MotionSegment(kind=MotionSegment.LINE, pose_goals=[goal]))
    assert response.code == Response.SUCCESS, response.message
    assert np.allclose(tips(response)[-1][:3, 3], first[:3, 3] + [0.1, 0.1, 0.0], atol=1e-6)


def test_a_line_that_meets_an_obstacle_names_its_segment_or_ends_early(running):
    wall = marker(position=(1.2, 0.0, 1.0), scale=(0.05, 2.0, 3.0), frame="")
    fields = {"obstacles": MarkerArray(markers=[wall]), "ignore_scene": True}
    failed = running.plan_sequence(line([0.05, 0, 0]), line([1.0, 0, 0]), **fields)
    assert failed.code == -1
    assert "segment 1" in failed.message and "test/0" in failed.message and not failed.trajectory.points
    assert 0 < failed.fraction < 1
    partial = running.plan_sequence(line([0.05, 0, 0]), line([1.0, 0, 0]), allow_partial=True, **fields)
    assert partial.code == Response.SUCCESS and 0 < partial.fraction < 1 and "ended early" in partial.message
    assert len(partial.segment_ends_s) == 2


@pytest.mark.parametrize(
    ("segments", "fields", "code", "words"),
    [
        ((), {}, -28, "no segments"),
        ((free(),), {}, -28, "segment 0"),
        ((line([0, 0, 0.1]), free(START[:3])), {}, -27, "segment 1: joint goal 0"),
        ((line([np.nan, 0, 0]),), {}, -27, "segment 0"),
        ((line([0, 0, 0.1], pose_goals=[pose_goal((1, 0, 1), "")]),), {}, -28, "beside its goals"),
        ((free(START), MotionSegment(joint_goals=[joints(START, JOINTS)], translation=UP)), {}, -28, "segment 1"),
        ((line([0, 0, 0.1], "nowhere"),), {}, -21, "nowhere"),
        ((MotionSegment(kind=7),), {}, 99999, "kind is 7"),
        ((line([0, 0, 0.1], blend_radius=-1.0),), {}, 99999, "blend_radius"),
        ((line([0, 0, 0.1], velocity_scaling=2.0),), {}, 99999, "velocity_scaling"),
        ((line([0, 0, 9.0]),), {}, None, "segment 0"),
        ((free(START + [9, 0, 0, 0, 0, 0]),), {}, -27, "segment 0"),
        ((line([0, 0, 0.1]),), {"start": JointState()}, -23, "joint_states"),
        ((line([0, 0, 0.1]),), {"start": joints(START + [9, 0, 0, 0, 0, 0], JOINTS)}, -26, "along_x"),
        ((line([0, 0, 0.1]),), {"planner": "dijkstra"}, 99999, "dijkstra"),
        ((line([0, 0, 0.1]),) * 101, {}, 99999, "max_segments"),
    ],
)
def test_what_is_wrong_has_a_code_and_is_named(running, segments, fields, code, words):
    response = running.plan_sequence(*segments, **fields)
    assert response.code != Response.SUCCESS and words in response.message and not response.trajectory.points
    assert code is None or response.code == code, response.message
