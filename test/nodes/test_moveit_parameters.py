"""get_planner_params, set_planner_params and clear_octomap over real DDS."""

import pytest

pytest.importorskip("moveit_msgs.srv", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from moveit_msgs.msg import PlannerParams
from moveit_msgs.srv import GetPlannerParams, SetPlannerParams
from octomap_msgs.msg import Octomap, OctomapWithPose
from running_node import LATCHED, shared
from test_moveit_node import SERVICES, MoveItNode
from test_scene_node import octree_of

from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.nodes.moveit.planner_params import params_message

SERVICES["get_planner_params"] = GetPlannerParams
SERVICES["set_planner_params"] = SetPlannerParams
node_of_module, node = shared(MoveItNode)


def told(node, planner="", **fields):
    """{key: value}, every one of which is described."""
    params = node.ask("get_planner_params", planner_config=planner, **fields).params
    assert len(params.keys) == len(params.values) == len(params.descriptions) and all(params.descriptions)
    return dict(zip(params.keys, params.values))


def change(node, planner, replace=False, **settings):
    params = PlannerParams(keys=list(settings), values=list(settings.values()))
    node.ask("set_planner_params", planner_config=planner, params=params, replace=replace)


def test_the_parameters_of_a_planner_are_told_and_changed(node):
    before = told(node, "rrt_connect")
    assert before == told(node) == told(node, "RRTConnectkConfigDefault", pipeline_id="ompl", group="any")
    assert float(before["time_limit_s"]) == 10.0 and before["weights"] == "" and before["objective"] == "time"
    change(node, "rrt_connect", time_limit_s="3.5", shortcut_rounds="1", weights="1.0, 2, 1", objective="length")
    after = told(node, "rrt_connect")
    changed = {key for key in after if after[key] != before[key]}
    assert (
        changed == {"time_limit_s", "shortcut_rounds", "weights", "objective"} and after["weights"] == "1.0, 2.0, 1.0"
    )
    assert node.node.get_parameter("rrt_connect.time_limit_s").value == 3.5
    assert node.node.values.rrt_connect.weights == (1.0, 2.0, 1.0) and node.node.values.prm.time_limit_s == 10.0
    change(node, "rrt_connect", replace=True, time_limit_s="4")
    assert told(node, "rrt_connect") == before | {"time_limit_s": "4.0"}
    change(node, "rrt_connect", replace=True)
    assert told(node, "rrt_connect") == before
    line = told(node, "LIN", pipeline_id="pilz_industrial_motion_planner")
    assert line == told(node, "CIRC") and "tolerance" in line and told(node, "PTP") == {}


@pytest.mark.parametrize(
    ("planner", "settings"),
    [
        ("rrt_connect", {"time_limit_s": "-1"}),
        ("rrt_connect", {"time_limit_s": "soon"}),
        ("rrt_connect", {"shortcut_rounds": "1.5"}),
        ("rrt_connect", {"weights": "1, x"}),
        ("rrt_connect", {"objective": "beauty"}),
        ("rrt_connect", {"shortcut_rounds": "1", "longest_valid_segment_fraction": "0.01"}),
        ("STOMP", {"time_limit_s": "1"}),
    ],
)
def test_what_is_wrong_changes_nothing(node, planner, settings):
    before = told(node, "rrt_connect")
    change(node, planner, **settings)
    assert told(node, "rrt_connect") == before


def test_mistakes_are_logged_and_answered_by_nothing(node):
    assert told(node, "STOMP") == {} == told(node, "LIN", pipeline_id="chomp")
    before = told(node)
    node.ask("set_planner_params", params=PlannerParams(keys=["time_limit_s"]))
    assert told(node) == before


def test_a_group_that_is_unknown_has_no_parameters():
    asked, values = GetPlannerParams.Request(group="leg"), ArmParameters()
    with pytest.raises(RequestError, match="'leg'.*arm, hand"):
        params_message(asked, values, ("arm", "hand"))
    assert params_message(asked, values, ()).keys == params_message(GetPlannerParams.Request(), values, ("arm",)).keys


def test_clear_octomap_removes_what_sensors_saw_and_no_objects(node):
    empty = pytest.importorskip("std_srvs.srv", reason="the ROS package std_srvs is not installed").Empty
    SERVICES["clear_octomap"] = empty
    octomap = OctomapWithPose()
    octomap.header.frame_id, octomap.origin = "plate", messages.pose((0.1, 0.0, 0.0))
    octomap.octomap = Octomap(binary=True, id="OcTree", resolution=0.1)
    octomap.octomap.data = np.frombuffer(octree_of((-8, 6, 1)), np.int8).tolist()
    scene = messages.scene(messages.box("bar"))
    scene.world.octomap = octomap
    node.apply(scene)
    seen = octomap.octomap
    seen.header.frame_id = "plate"
    node.publisher(Octomap, "/arm_planner/octomap", LATCHED).publish(seen)
    node.wait_until(lambda: set(node.objects()) == {"bar", "<octomap>", "octomap/plate"})
    node.ask("clear_octomap")
    assert set(node.objects()) == {"bar"}
    node.ask("clear_octomap")
    node.publisher(Octomap, "/arm_planner/octomap", LATCHED).publish(seen)  # what is seen again counts again
    node.wait_until(lambda: set(node.objects()) == {"bar", "octomap/plate"})
    node.ask("clear_octomap")
