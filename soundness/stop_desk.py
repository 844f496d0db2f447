"""The nodes and the ways to stop them that `soundness/stops.py` attacks; it needs ROS's message packages."""

import importlib.util
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from move_harness import Desk, Moving
from node_harness import GROUP, ROBOT, marker
from rclpy.action import ActionClient
from running_node import LATCHED
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker

from gpu_planners.arm import load_urdf
from gpu_planners.arm.control.spline import Spline
from gpu_planners.nodes.arm.conversions import trajectory_of
from gpu_planners.verify import CoalScene

from .harness import Skipped

SIZE = (0.08, 0.08, 0.08)  # metres, of the obstacle that comes
JUMP = 1e-3  # rad, and rad/s, allowed from one curve to the next
SLACK = 1.05  # times the acceleration limits that a motion may have
FAR = 0.25  # metres from the robot, at least, where the obstacle comes
EARLY = 0.9  # seconds, at least, that the robot still moves when it comes
OTHER = ROBOT.replace('length="0.3"', 'length="0.28"')


class StopDesk(Desk):
    """The nodes; boxes: obstacles that have come, as CoalScene takes them."""

    def __init__(self):
        super().__init__()
        self.robot = load_urdf(ROBOT, joints=GROUP)
        self.clients, self.boxes, self._told = {}, [], []
        self.client_node.create_subscription(JointTrajectory, "/arm_planner/executing", self._told.append, LATCHED)
        self.events = self.publisher(String, "/trajectory_execution_event")
        self.robots = self.publisher(String, "/robot_description", LATCHED)

    def begin(self, action, goal, speed):
        """Have the robot move -> what tells how that ended."""
        self._told.clear()
        self._record()
        if action == "move":
            return MovingByMove(self, goal, speed)
        return MovingByMoveIt(self, action, goal, speed)

    def wait_for_part(self, share):
        """Wait until about so much of the motion has passed -> its Spline."""
        self.wait_until(lambda: any(one.points for one in self._told), 60)
        curve = Spline.of(trajectory_of(next(one for one in self._told if one.points)))
        since = len(self.seen)
        self.wait_until(lambda: len(self.seen) > since and np.abs(self.place() - curve.positions[0]).max() > 1e-4, 20)
        time.sleep(share * curve.end)
        return curve

    def _record(self):
        """Keep the curves that the player plays from now on, with the times when it begins them."""
        player, self.played, take = self.player, [], type(self.player).begin

        def begin(trajectory):
            before, text = player.player.curve, take(player, trajectory)
            if not text:
                self.played.append((player.now(), before, player.player.curve))
            return text

        player.begin = begin

    def beyond_limits(self):
        """Texts about what the player was told to do and no joint can: accelerations, and jumps from curve to curve.

        A stop that comes late begins where the robot would be had it braked in time.
        """
        most = self.robot.acceleration
        for now, before, after in self.played:
            late = max(0.0, now - after.start)
            old, new = before.at(now), after.at(now)
            for what, jump, allowed in (
                ("positions", new.positions - old.positions, most * late**2 / 2 + JUMP),
                ("velocities", new.velocities - old.velocities, SLACK * most * late + JUMP),
            ):
                if (np.abs(jump) > allowed).any():
                    yield f"{what} jump by {jump.tolist()} where a trajectory comes {late:.3g} s late"
            bent = np.abs(after.at(np.arange(now, after.end, 5e-4)).accelerations).max(axis=0, initial=0.0)
            if (bent > SLACK * most).any():
                yield f"accelerations of {bent.tolist()} rad/s^2"

    def free(self, path):
        """Is a path (K, dof) free of the obstacles that have come, as coal says?"""
        return not self.boxes or self._coal().first_collision(np.atleast_2d(path), spacing=0.002) is None

    def _coal(self):
        return CoalScene(ROBOT, None, self.boxes, joints=GROUP, self_pairs=[])

    def put_box_ahead(self, curve):
        at = self.robot.link_poses(curve.positions[-1])["hand"][0][:3, 3]
        self.boxes = [{"type": "box", "name": "box", "size": SIZE, "position": at.tolist(), "quat_xyzw": (0, 0, 0, 1)}]
        left = curve.end - curve.nearest_time(self.place(), 0.0, curve.end)
        if self._coal().distance(self.place()) < FAR or left < EARLY:
            raise Skipped("the robot was too near to its goal for an obstacle there")
        self.publish_obstacles(marker(position=tuple(at), scale=SIZE))

    def restore(self):
        """The scene and the robot as at first."""
        self.boxes = []
        self.publish_obstacles(marker(namespace="", action=Marker.DELETEALL))
        self.robots.publish(String(data=ROBOT))
        self.wait_until(lambda: self.status.message == "ready" and self.facts["obstacles"] == "0", 120)


class MovingByMove(Moving):
    """A motion of ~/move."""

    def __init__(self, desk, goal, speed):
        from node_harness import joints

        from gpu_planners_msgs.action import Move

        super().__init__(desk, Move.Goal(joint_goals=[joints(goal)], velocity_scaling=speed))

    def outcome(self):
        """(code, text)"""
        result = self.wait(60).result
        return result.code, result.message


class MovingByMoveIt:
    """A motion of MoveGroup, or of ExecuteTrajectory, which MoveGroup plans."""

    def __init__(self, desk, action, goal, speed):
        import moveit_messages as messages
        from moveit_msgs.action import ExecuteTrajectory, MoveGroup

        self.desk = desk
        request = messages.motion_request(messages.joint_goal(goal), start=None, max_velocity_scaling_factor=speed)
        asked = MoveGroup.Goal(request=request)
        asked.planning_options.plan_only = action == "execute_trajectory"
        self.handle = self._send(MoveGroup, "move_action", asked)
        if action == "execute_trajectory":
            future = self.handle.get_result_async()
            desk.wait_until(future.done, 60)
            asked = ExecuteTrajectory.Goal(trajectory=future.result().result.planned_trajectory)
            self.handle = self._send(ExecuteTrajectory, action, asked)
        self.future = self.handle.get_result_async()

    def _send(self, kind, name, goal):
        desk = self.desk
        if name not in desk.clients:
            desk.clients[name] = ActionClient(desk.client_node, kind, name)
            assert desk.clients[name].wait_for_server(20)
        future = desk.clients[name].send_goal_async(goal)
        desk.wait_until(future.done, 60)
        return future.result()

    def outcome(self):
        self.desk.wait_until(self.future.done, 60)
        code = self.future.result().result.error_code
        return code.val, code.message


@dataclass(frozen=True)
class Way:
    """Who says stop, and how. action: what moves the robot; code: of the answer; ends: does a node end by it?

    stop: called with the StopDesk, what moves and the Spline of the motion
    """

    action: str
    code: int
    stop: Callable[[StopDesk, Any, Spline], Any]
    ends: bool = False


PREEMPTED, INVALIDATED, FAILED, ABORT = -7, -3, -4, -30


def _cancel(desk, moving, curve):
    moving.handle.cancel_goal_async()


def _say_stop(desk, moving, curve):
    desk.events.publish(String(data="stop"))


def _end(desk, node):
    threading.Thread(target=node.finish, args=(5.0,), daemon=True).start()


WAYS = {
    "cancel of ~/move": Way("move", PREEMPTED, _cancel),
    "trajectory_execution_event": Way("move", PREEMPTED, _say_stop),
    "obstacle ahead": Way("move", INVALIDATED, lambda desk, moving, curve: desk.put_box_ahead(curve)),
    "refused message about obstacles": Way(
        "move", INVALIDATED, lambda desk, moving, curve: desk.publish_obstacles(marker(frame="moon"))
    ),
    "another robot_description": Way(
        "move", INVALIDATED, lambda desk, moving, curve: desk.robots.publish(String(data=OTHER))
    ),
    "busy worker (monitor_patience_s 1)": Way(
        "move", INVALIDATED, lambda desk, moving, curve: desk.node.worker.do(time.sleep, 3.0)
    ),
    "end of arm_planner": Way("move", ABORT, lambda desk, moving, curve: _end(desk, desk.node), True),
    "end of trajectory_player": Way("move", FAILED, lambda desk, moving, curve: _end(desk, desk.player), True),
}
OF_MOVEIT = {
    "cancel of MoveGroup": Way("move_action", PREEMPTED, _cancel),
    "cancel of ExecuteTrajectory": Way("execute_trajectory", PREEMPTED, _cancel),
    "trajectory_execution_event, MoveGroup": Way("move_action", PREEMPTED, _say_stop),
    "trajectory_execution_event, ExecuteTrajectory": Way("execute_trajectory", PREEMPTED, _say_stop),
}


class Desks:
    """A StopDesk, made again when one of its nodes has ended."""

    def __init__(self):
        self._desk = None
        self.ways = WAYS | (OF_MOVEIT if importlib.util.find_spec("moveit_msgs") else {})

    def desk(self):
        if self._desk is None:
            self._desk = StopDesk()
        return self._desk

    def after(self, way):
        """Be as before for the next case."""
        if way.ends:
            self.close()
        else:
            self._desk.restore()

    def close(self):
        if self._desk is not None:
            self._desk.close()
            self._desk = None
