"""Obstacles that move, over real DDS: by what joint_states show and coal says of where they were at that time."""

import numpy as np
import pytest
from geometry_msgs.msg import Pose, Vector3
from node_harness import joints, marker, request
from running_node import shared
from test_move_node import BLOCK, CODES, HOME, RADIUS, SLOW, Here, coal_scene

from gpu_planners.errors import ObstacleError
from gpu_planners.nodes.arm.moving_obstacles import MovingObstacles

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(MovingObstacles is None, reason="gpu_planners_msgs is older: run make setup"),
]

NAME = "test/0"


class Moved(Here):
    def __init__(self):
        # a proof takes 0.1 s of a core: beside other programs longer than the 1 s after which the robot would stop
        super().__init__(switch_lead_s=2.0, moving_horizon_s=30.0, monitor_patience_s=20.0)
        self.movers = self.publisher(MovingObstacles, "/arm_planner/moving_obstacles")

    def restore(self):
        self.tell([], [])  # a right message, whatever was refused before
        super().restore()
        assert self.set_parameter("moving_horizon_s", 30.0).successful

    def tell(self, names, velocities, positions=(), stamp=None):
        """Say how obstacles move -> seconds when they were where they are told to be."""
        now = self.client_node.get_clock().now() if stamp is None else stamp
        message = MovingObstacles(names=names, velocities=[Vector3(x=x, y=y, z=z) for x, y, z in velocities])
        for x, y, z in positions:
            pose = Pose()
            pose.position.x, pose.position.y, pose.position.z, pose.orientation.w = x, y, z, 1.0
            message.poses.append(pose)
        message.header.frame_id = "plate"
        message.header.stamp = now.to_msg()
        self.movers.publish(message)
        return now.nanoseconds * 1e-9


node_of_module, desk = shared(Moved)


def place(angle, radius=RADIUS):
    """(3,) of a block before the arm stretched out at an angle of the shoulder; in the plate's frame that is turned."""
    turned = angle + np.pi / 2
    return np.array([radius * np.cos(turned), radius * np.sin(turned), 0.1])


def outward(angle, speed):
    return speed * (place(angle, 1.0) - [0, 0, 0.1])


def put(desk, angle, z=0.0):
    """A block that stands there, z above the arm's plane, and is in the scene."""
    desk.publish_obstacles(marker(position=tuple(place(angle) + [0.0, 0.0, z]), scale=BLOCK["size"]))
    desk.wait_until(lambda: NAME in desk.node.scene.objects.standing)


def moves(desk):
    desk.wait_until(lambda: desk.node.scene.objects.movers)


def touched(desk, since, tmp_path, told):
    """Times of joint_states at which coal has the robot in the block.

    told: [(seconds, position (3,), velocity (3,))]
    """
    scene, found = coal_scene(tmp_path, 0.0), []
    for t, q in desk.seen[since:]:
        began, position, velocity = [each for each in told if each[0] <= t or each is told[0]][-1]
        pose = np.eye(4)
        pose[:3, 3] = np.asarray(position) + np.asarray(velocity) * max(t - began, 0.0)
        if scene.among([{"name": "block", **BLOCK, "pose": pose}]).in_collision(q):
            found.append(t)
    return found


def test_a_block_that_leaves_the_way_in_time_is_no_obstacle(desk, tmp_path):
    put(desk, 2.0)
    standing = desk.plan(request(goals=[(2.5, 0.0, 0.0)], **SLOW))
    speed = outward(2.0, 0.5)
    since, began = len(desk.seen), desk.tell([NAME], [speed])
    moves(desk)
    answer = desk.send((2.5, 0.0, 0.0), **SLOW).wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 1, answer.result.message
    path = np.array([q for _, q in desk.seen[since:]])
    assert np.abs(path[:, 1:]).max() < 1e-3  # the straight way, which was not free before
    assert standing.code != 1 or np.ptp([p.positions[1] for p in standing.path.points]) > 1e-2
    assert touched(desk, since, tmp_path, [(began, place(2.0), speed)]) == []


def test_a_block_that_comes_down_through_the_way_is_avoided_in_time(desk, tmp_path):
    above, speed = place(1.2) + [0.0, 0.0, 1.4], (0.0, 0.0, -0.4)
    put(desk, 1.2, z=1.4)
    since, began = len(desk.seen), desk.tell([NAME], [speed])
    moves(desk)
    answer = desk.send((2.5, 0.0, 0.0), replans=3, **SLOW).wait()
    assert answer.result.code == CODES.SUCCESS, answer.result.message
    assert touched(desk, since, tmp_path, [(began, above, speed)]) == []


def test_a_motion_under_way_is_answered_anew_when_a_block_begins_to_move(desk, tmp_path):
    """It hangs above the way, and is then told to come down when the robot would pass."""
    above, speed = place(2.3) + [0.0, 0.0, 0.9], (0.0, 0.0, -0.18)
    put(desk, 2.3, z=0.9)
    since = len(desk.seen)
    moving = desk.send((2.8, 0.0, 0.0), replans=3, velocity_scaling=0.2)
    moving.wait_for("moving", 0.1)
    began = desk.tell([NAME], [speed])
    answer = moving.wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans > 1, answer.result.message
    told = [(0.0, above, (0.0, 0.0, 0.0)), (began, above, speed)]
    assert touched(desk, since, tmp_path, told) == []


def test_a_block_that_is_told_to_stand_stands(desk):
    put(desk, 2.0)
    desk.tell([NAME], [(0.0, 0.0, 0.3)])
    moves(desk)
    desk.tell([NAME], [(0.0, 0.0, 0.0)], [tuple(place(-2.0))])
    desk.wait_until(lambda: not desk.node.scene.objects.movers)
    assert desk.send((2.5, 0.0, 0.0), velocity_scaling=1.0).wait().result.code == CODES.SUCCESS
    desk.tell([NAME], [(0.0, 0.0, 0.3)])
    moves(desk)
    put(desk, -2.0)  # any other message that places it
    desk.wait_until(lambda: not desk.node.scene.objects.movers)


@pytest.mark.parametrize(
    ("names", "velocities", "positions", "told"),
    [
        (["nobody"], [(0.0, 0.0, 0.1)], [], "no object 'nobody'"),
        ([NAME], [], [], "1 names, 0 velocities"),
        ([NAME, NAME], [(0.0, 0.0, 0.1)] * 2, [], "each name once"),
        ([NAME], [(0.0, 0.0, np.nan)], [], "velocity"),
        ([NAME], [(0.0, 0.0, 0.1)], [(0.0, np.nan, 0.0)], NAME),
    ],
)
def test_a_message_that_is_wrong_is_refused_and_plans_wait_for_a_right_one(desk, names, velocities, positions, told):
    put(desk, -2.0)
    desk.tell(names, velocities, positions)
    desk.wait_until(lambda: "moving_obstacles" in desk.status.message)
    answer = desk.plan(request(goals=[(0.5, 0.0, 0.0)]))
    assert answer.code == -19 and told in answer.message, answer.message
    desk.tell([NAME], [(0.0, 0.0, 0.1)])
    moves(desk)
    assert desk.plan(request(goals=[(0.5, 0.0, 0.0)])).code == 1


def test_what_moves_cannot_be_taken_up(desk):
    put(desk, -2.0)
    desk.tell([NAME], [(0.0, 0.0, 0.1)])
    moves(desk)
    with pytest.raises(ObstacleError, match="moves: say where it stands"):
        desk.node.scene.objects.attach(NAME, "hand", np.eye(4))


def test_a_start_with_a_stamp_begins_then(desk):
    """By then the block has gone."""
    put(desk, 2.0)
    desk.tell([NAME], [tuple(outward(2.0, 0.3))])
    moves(desk)
    asked = request(goals=[(2.5, 0.0, 0.0)], time_limit_s=1.0)
    asked.start = joints(HOME)
    late = desk.client_node.get_clock().now().nanoseconds * 1e-9 + 10.0
    asked.start.header.stamp.sec, asked.start.header.stamp.nanosec = int(late), int(late % 1 * 1e9)
    answer = desk.plan(asked)
    assert answer.code == 1 and "waits" not in answer.message
    asked.start.header.stamp.sec += 1000
    answer = desk.plan(asked)
    assert answer.code == -26 and "ahead of the node's clock" in answer.message
