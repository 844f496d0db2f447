"""The scene of the arm_planner node over real DDS: what links carry, what sensors see, frames of tf2."""

import time

import numpy as np
import pytest
from node_harness import GROUP, ROBOT, RunningNode, joints, marker, request
from running_node import LATCHED, shared, starter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState, PointCloud2, PointField
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.nodes.arm import codes
from gpu_planners_msgs.msg import AttachedObject, MotionSegment
from gpu_planners_msgs.srv import AttachObjects, ForgetSources, PlanSequence

SUCCESS = codes.SUCCESS
POST = dict(position=(-1.2 * np.sin(0.5), 1.2 * np.cos(0.5), 0.1), scale=(0.1, 0.1, 0.2))  # beyond the reach of the arm
STICK = dict(position=(0.3, 0.0, 0.0), scale=(0.3, 0.05, 0.05), frame="")  # along the hand

node_of_module, running = shared(lambda: SceneNode(world_frame="world", joint_state_timeout_s=600.0))
start_node = starter(lambda **parameters: SceneNode(**parameters))


class SceneNode(RunningNode):
    """With a client of ~/attach_objects, and joint_states that have been heard."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.attaching = self.client_node.create_client(AttachObjects, "/arm_planner/attach_objects")
        assert self.attaching.wait_for_service(10)

    def move_to(self, *q):
        """Publish joint_states until the node plans from there."""
        publisher = self.publisher(JointState, "/joint_states")

        def arrived():
            publisher.publish(joints([*q, 0.0], [*GROUP, "slide"]))
            start = self.plan(request(start=None, goals=[q])).path.points
            return start and np.allclose(start[0].positions, q)

        self.wait_until(arrived)

    def attach(self, *objects, detach=(), remove=()):
        return self.call(self.attaching, AttachObjects.Request(attach=objects, detach=detach, remove=remove))

    @property
    def attached(self):
        return list(self.attach().attached)

    def restore(self):
        self.attach(remove=self.attached)
        super().restore()


def carried(name="stick", link="hand", shapes=None, touch_links=("finger",)):
    shapes = [marker(**STICK)] if shapes is None else shapes
    return AttachedObject(name=name, link=link, shapes=shapes, touch_links=touch_links)


def with_stick(tmp_path):
    """The robot's URDF with the stick as a link of its own, for coal."""
    urdf = tmp_path / "with_stick.urdf"
    x, y, z = STICK["position"]
    size = " ".join(map(str, STICK["scale"]))
    urdf.write_text(
        ROBOT.replace(
            "</robot>",
            f'<link name="stick"><collision><geometry><box size="{size}"/></geometry></collision></link>'
            f'<joint name="grip" type="fixed"><parent link="hand"/><child link="stick"/><origin xyz="{x} {y} {z}"/>'
            "</joint></robot>",
        )
    )
    return urdf


def first_meeting(urdf, response, obstacles):
    """What coal finds along a path among boxes (centre, size), or None."""
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    boxes = [{"type": "box", "position": p, "quat_xyzw": [0, 0, 0, 1], "size": s} for p, s in obstacles]
    scene = CoalScene(urdf, None, boxes, joints=GROUP, self_pairs=[])
    return scene.first_collision([point.positions for point in response.path.points], spacing=0.002)


def test_what_a_link_carries_keeps_clear_of_obstacles(running, tmp_path):
    running.publish_obstacles(marker(**POST))
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    post, urdf = [(POST["position"], POST["scale"])], with_stick(tmp_path)
    bare = running.plan(request())
    assert bare.code == SUCCESS and first_meeting(urdf, bare, post)
    answer = running.attach(carried())
    assert answer.code == SUCCESS and list(answer.attached) == ["stick"] and "1 attached" in answer.message
    running.wait_until(lambda: running.facts["attached"] == "stick")
    around = running.plan(request())
    assert around.code == SUCCESS and around.path_length > bare.path_length + 0.05
    assert first_meeting(urdf, around, post) is None
    inside = running.plan(request(goals=[(0.5, 0.0, 0.0)]))
    assert inside.code == codes.GOAL_IN_COLLISION and "stick" in inside.message
    ignored = running.plan(
        request(goals=[(0.5, 0.0, 0.0)], ignore_scene=True)
    )  # the stick is the robot's, not the scene's
    assert ignored.code == SUCCESS
    assert list(running.attach(remove=["stick"]).attached) == []
    again = running.plan(request())
    assert again.code == SUCCESS and np.isclose(again.path_length, bare.path_length, atol=1e-5)


def test_what_is_put_down_stands_where_the_link_was(running):
    running.move_to(0.5, 0.0, 0.0)
    assert running.attach(carried()).code == SUCCESS
    put = running.attach(detach=["stick"])
    assert put.code == SUCCESS and list(put.attached) == []
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    met = running.plan(request(start=(0.0, 0.0, 0.0), goals=[(0.5, 0.35, 0.0)]))
    assert met.code in (SUCCESS, codes.GOAL_IN_COLLISION)
    at_link = running.plan(request(start=(0.0, 0.0, 0.0), goals=[(0.5, 0.0, 0.0)]))
    assert at_link.code == codes.GOAL_IN_COLLISION and "stick" in at_link.message  # the finger is in it again
    taken = running.attach(carried(shapes=[]))
    assert taken.code == SUCCESS and list(taken.attached) == ["stick"]
    assert running.plan(request(start=None, goals=[(0.5, 0.3, 0.0)])).code == SUCCESS
    running.move_to(-1.0, 0.0, 0.0)
    away = running.attach(detach=["stick"])
    assert away.code == SUCCESS
    assert running.plan(request(start=(0.0, 0.0, 0.0), goals=[(0.5, 0.0, 0.0)])).code == SUCCESS
    assert running.attach(carried(shapes=[]), remove=["stick"]).code == SUCCESS and running.attached == []


def test_a_marker_is_taken_up_and_its_sender_may_go_on_reporting_it(running):
    running.move_to(0.5, 0.0, 0.0)
    part = marker(
        position=(-1.1 * np.sin(0.5), 1.1 * np.cos(0.5), 0.1), scale=(0.1, 0.1, 0.1), namespace="seen", number=3
    )
    running.publish_obstacles(part)
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    assert running.attach(carried("seen/3", shapes=[])).code == SUCCESS
    running.publish_obstacles(part, marker(position=(0, 3, 0), namespace="seen", number=4))
    running.wait_until(lambda: running.facts["obstacles"] == "1" and running.facts["attached"] == "seen/3")
    assert running.problem == ""
    assert running.plan(request(start=None, goals=[(0.0, 0.5, 0.0)])).code == SUCCESS
    running.publish_obstacles(marker(namespace="seen", action=Marker.DELETEALL))
    running.wait_until(lambda: running.facts["obstacles"] == "0")
    assert running.attached == ["seen/3"]


BAD_SHAPE, FOREIGN = marker(scale=(0, 1, 1), frame=""), marker(frame="moon")


@pytest.mark.parametrize(
    "objects, changes, code, words",
    [
        ([carried("b", "moon")], {}, codes.INVALID_LINK_NAME, ["'b'", "no link 'moon'"]),
        ([carried("b", touch_links=["moon"])], {}, codes.INVALID_LINK_NAME, ["'b'", "no link 'moon'"]),
        ([carried("b", shapes=[BAD_SHAPE])], {}, codes.INVALID_OBJECT_NAME, ["shape 0", "'b'", "scale"]),
        ([carried("b", shapes=[FOREIGN])], {}, codes.FRAME_TRANSFORM_FAILURE, ["'b'", "'moon'"]),
        ([carried("b", shapes=[])], {}, codes.INVALID_OBJECT_NAME, ["'b'", "stands"]),
        ([carried("")], {}, codes.INVALID_OBJECT_NAME, ["name"]),
        ([carried("hand")], {}, codes.INVALID_OBJECT_NAME, ["'hand' is a link"]),
        ([carried("test/0")], {}, codes.INVALID_OBJECT_NAME, ["'test/0'", "stands"]),
        ([], {"detach": ["b"]}, codes.INVALID_OBJECT_NAME, ["'b'", "attached: 'kept'"]),
        ([], {"remove": ["b"]}, codes.INVALID_OBJECT_NAME, ["'b'", "attached: 'good'"]),
    ],
)
def test_a_request_that_is_refused_changes_nothing(running, objects, changes, code, words):
    running.move_to(0.0, 0.0, 0.0)
    running.publish_obstacles(marker(position=(0, 3, 0)))
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    assert running.attach(carried("kept")).code == SUCCESS
    before = running.plan(request()).path
    answer = running.attach(carried("good"), *objects, **changes | {"remove": ["kept", *changes.get("remove", [])]})
    assert answer.code == code and all(word in answer.message for word in words), answer.message
    assert list(answer.attached) == ["kept"] == running.attached and running.plan(request()).path == before


def test_without_joint_states_or_a_robot_the_answer_says_so(start_node):
    running = start_node(robot=None)
    assert running.attach(carried()).code == codes.COLLISION_CHECKING_UNAVAILABLE
    running.publish_robot(ROBOT)
    assert running.attach(carried()).code == SUCCESS  # its shapes are given in the link
    stale = running.attach(detach=["stick"])
    assert stale.code == codes.ROBOT_STATE_STALE and "'hand'" in stale.message and running.attached == ["stick"]


def test_who_joins_late_sees_the_whole_scene(running):
    running.move_to(0.5, 0.0, 0.0)
    running.publish_obstacles(marker(position=(0, 3, 0)))
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    assert running.attach(carried()).code == SUCCESS
    late = running.received(MarkerArray, "/arm_planner/markers", LATCHED)

    def shown():
        found = {(m.ns, m.type): m for m in late[-1].markers} if late else {}
        return ("obstacles", Marker.CUBE) in found and found.get(("attached", Marker.CUBE))

    running.wait_until(shown)
    at = shown().pose.position
    assert np.allclose([at.x, at.y, at.z], [-1.2 * np.sin(0.5), 1.2 * np.cos(0.5), 0.1], atol=1e-6)


def cloud(points, frame="plate", stamp=0.0):
    message = PointCloud2(height=1, width=len(points), point_step=16, row_step=16 * len(points), is_dense=False)
    message.header.frame_id, message.header.stamp.sec = frame, int(stamp)
    message.fields = [
        PointField(name=name, offset=4 * (i + 1), datatype=PointField.FLOAT32, count=1) for i, name in enumerate("xyz")
    ]
    message.data = np.column_stack([np.zeros(len(points)), points]).astype(np.float32).tobytes()
    return message


def wall_of_points():
    """A post within the arm's reach, in its way from 0 to 1, and points that are the arm's own."""
    z, a = np.meshgrid(np.linspace(-0.2, 0.4, 40), np.linspace(0, 2 * np.pi, 40))
    post = np.column_stack([-0.62 + 0.05 * np.cos(a.ravel()), 0.62 + 0.05 * np.sin(a.ravel()), z.ravel()])
    own = np.column_stack([np.full(50, 0.03), np.linspace(0.05, 0.5, 50), np.full(50, 0.1)])  # on the upper arm at 0
    return post, np.concatenate([post, own, [[np.nan, 0, 0], [np.inf, 0, 0]]])


def test_a_cloud_is_in_the_way_and_the_robot_is_not(running, tmp_path):
    running.move_to(0.0, 0.0, 0.0)
    straight = running.plan(request())
    post, seen = wall_of_points()
    publisher = running.publisher(PointCloud2, "/arm_planner/points", sensor_qos())
    publisher.publish(cloud(seen))
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    around = running.plan(request())
    assert around.code == SUCCESS and around.path_length > straight.path_length + 0.05
    cells = np.unique(np.floor(post.astype(np.float32).astype(float) / 0.02), axis=0)
    boxes = [((cell + 0.5) * 0.02, [0.02] * 3) for cell in cells]
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(ROBOT)
    assert first_meeting(urdf, around, boxes) is None and first_meeting(urdf, straight, boxes)
    assert running.set_parameter("points_box", [0.0, -2.0, -2.0, 2.0, 2.0, 2.0]).successful  # not where the post is
    publisher.publish(cloud(seen))
    running.wait_until(lambda: np.isclose(running.plan(request()).path_length, straight.path_length), 60)
    assert running.set_parameter("points_box", []).successful
    for wrong, words in [
        (cloud(seen, frame="moon"), ["'points/moon'", "not fixed"]),
        (cloud(seen, stamp=5.0), ["points_max_age_s", "s old"]),
        (PointCloud2(width=3, height=1), ["fields x, y, z"]),
    ]:
        publisher.publish(wrong)
        running.wait_until(lambda words=words: all(word in running.problem for word in words))
        refused = running.plan(request())  # as after a message on ~/obstacles that was refused
        assert refused.code == codes.INVALID_OBJECT_NAME and "the scene is not known" in refused.message
        publisher.publish(cloud(seen[:0], frame=wrong.header.frame_id))  # nothing is there, whatever the frame
        running.wait_until(lambda: not running.problem)
    running.wait_until(lambda: np.isclose(running.plan(request()).path_length, straight.path_length))


def test_a_cloud_that_cannot_be_placed_is_one_source_and_does_not_lock_the_node(start_node):
    running = start_node(points_padding=-1.0)
    publisher = running.publisher(PointCloud2, "/arm_planner/points", sensor_qos())
    far = np.array([[0.0, 5.0, 0.0]])

    def lose():
        publisher.publish(cloud(far, frame="moon"))
        running.wait_until(lambda: "'points/moon'" in running.problem, 20)
        assert running.plan(request()).code == codes.INVALID_OBJECT_NAME
        time.sleep(2.1)  # it is silent from now on

    lose()
    publisher.publish(cloud(far))  # of another frame
    running.wait_until(lambda: running.plan(request()).code == SUCCESS, 20)
    running.wait_until(lambda: not running.problem, 20)
    lose()
    client = running.client_node.create_client(ForgetSources, "/arm_planner/forget_sources")
    assert client.wait_for_service(10)
    assert running.call(client, ForgetSources.Request(sources=["points/mars"])).forgotten == []
    assert "'points/moon'" in running.problem
    answer = running.call(client, ForgetSources.Request())
    assert answer.code == SUCCESS and answer.forgotten == ["points/moon"] and "points/moon" in answer.message
    assert running.plan(request()).code == SUCCESS
    assert running.set_parameter("points_lifetime_s", 3.0).successful
    lose()
    time.sleep(1.5)
    assert running.plan(request()).code == SUCCESS
    running.wait_until(lambda: not running.problem, 20)


def test_obstacles_that_were_refused_end_with_their_life(start_node):
    running = start_node()
    short = marker(frame="moon")
    short.lifetime.sec = 2
    running.publish_obstacles(short)
    running.wait_until(lambda: "'moon'" in running.problem, 20)
    assert running.plan(request()).code == codes.INVALID_OBJECT_NAME
    running.wait_until(lambda: not running.problem, 20)
    assert running.plan(request()).code == SUCCESS


def test_no_question_changes_the_robot_that_others_see(running):
    """A request's gripper is of that request alone; only joint_states move the one of the scene, without a request."""
    running.move_to(0.0, 0.0, 0.0)
    scene = running.node.scene
    before, frames = scene.robot, scene.frames

    def finger():
        return scene.robot.link_poses(np.zeros(3))["finger"][0, 2, 3] - 0.1  # 0.1 m: where the wrist is

    for slide in (0.3, 0.1, 0.2):
        elsewhere = joints([0.0, 0.0, 0.0, slide], [*GROUP, "slide"])
        asked = request()
        asked.start = elsewhere
        assert running.plan(asked).code == SUCCESS
        client = running.client_node.create_client(PlanSequence, "/arm_planner/plan_sequence")
        assert client.wait_for_service(10)
        segment = MotionSegment(kind=MotionSegment.FREE, joint_goals=[joints((1.0, 0.5, 0.0))])
        answer = running.call(client, PlanSequence.Request(start=elsewhere, segments=[segment]))
        assert answer.code == SUCCESS, answer.message
        assert scene.robot is before and scene.frames is frames and np.isclose(finger(), 0.0)
    # the finger counts where the request has it
    running.publish_obstacles(marker(position=(0.0, 1.0, 0.35), scale=(0.05, 0.05, 0.05)))
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    asked.start.position[3] = 0.25
    met = running.plan(asked)
    assert met.code == codes.START_STATE_IN_COLLISION and "finger" in met.message, met.message
    assert running.plan(request()).code == SUCCESS
    publisher = running.publisher(JointState, "/joint_states")
    publisher.publish(joints([0.0, 0.0, 0.0, 0.15], [*GROUP, "slide"]))
    running.wait_until(lambda: np.isclose(finger(), 0.15), 20)
    publisher.publish(joints([0.0, 0.0, 0.0, 0.0], [*GROUP, "slide"]))
    running.wait_until(lambda: np.isclose(finger(), 0.0), 20)


HEAD = """<link name="neck"/><link name="eye"/>
  <joint name="pan" type="revolute"><parent link="plate"/><child link="neck"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <joint name="look" type="fixed"><parent link="neck"/><child link="eye"/></joint></robot>"""


def test_a_frame_that_a_joint_outside_the_plan_moves_is_where_joint_states_have_it(start_node):
    running = start_node(robot=ROBOT.replace("</robot>", HEAD))
    publisher = running.publisher(JointState, "/joint_states")
    scene = running.node.scene

    def turned(angle):
        publisher.publish(joints([0.0, 0.0, 0.0, angle], [*GROUP, "pan"]))
        return np.allclose(scene.frames["eye"][:2, 0], [np.cos(angle), np.sin(angle)], atol=1e-9)

    running.wait_until(lambda: turned(np.pi / 2), 20)
    assert {"neck", "eye"} <= scene.frames.moved
    running.publish_obstacles(marker(position=(0.62, 0.62, 0.1), frame="eye"))  # (-0.62, 0.62) of the root
    running.wait_until(lambda: running.facts["obstacles"] == "1", 20)
    met = running.plan(request(goals=[(0.78, 0.0, 0.0)]))
    assert met.code == codes.GOAL_IN_COLLISION and "test/0" in met.message, met.message


def sensor_qos():
    from rclpy.qos import qos_profile_sensor_data

    return qos_profile_sensor_data


def test_clouds_of_two_cameras_stay_side_by_side_and_end_with_their_life(start_node):
    running = start_node(points_padding=-1.0, points_lifetime_s=3.0)
    publisher = running.publisher(PointCloud2, "/arm_planner/points", sensor_qos())
    straight = running.plan(request()).path_length
    publisher.publish(cloud(wall_of_points()[0]))
    publisher.publish(cloud(np.array([[0.0, 5.0, 0.0]]), frame="base"))
    running.wait_until(lambda: running.facts["obstacles"] == "2")
    assert running.plan(request()).path_length > straight + 0.05
    time.sleep(3.0)
    assert np.isclose(running.plan(request()).path_length, straight)


def test_a_cloud_without_joint_states_is_refused(start_node):
    running = start_node()
    running.publisher(PointCloud2, "/arm_planner/points", sensor_qos()).publish(cloud(wall_of_points()[0]))
    running.wait_until(lambda: "joint_states" in running.problem and "points_padding" in running.problem)


def test_octomaps_and_voxel_grids_that_came_before_the_robot(start_node):
    octomap_msgs = pytest.importorskip("octomap_msgs.msg", reason="octomap_msgs is not installed")
    running = start_node(robot=None)
    # one inner node whose child 0 is occupied, sixteen times: the cell just below the middle in x, y and z
    leaf = octomap_msgs.Octomap(binary=True, id="OcTree", resolution=0.1)
    leaf.header.frame_id = "plate"
    leaf.data = np.frombuffer(octree_of((-7, 6, 1)), np.int8).tolist()
    running.publisher(octomap_msgs.Octomap, "/arm_planner/octomap", LATCHED).publish(leaf)
    running.publish_robot(ROBOT)
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    blocked = running.plan(request(goals=[(0.82, 0.0, 0.0)]))
    assert blocked.code == codes.GOAL_IN_COLLISION and "octomap/plate" in blocked.message, blocked.message
    assert running.plan(request(goals=[(0.4, 0.0, 0.0)])).code == SUCCESS


def octree_of(cell):
    """A binary octree of depth 16 with one occupied cell, numbered from the origin of the map."""
    data, key = b"", [c + (1 << 15) for c in cell]
    for level in range(15, -1, -1):
        child = sum((key[axis] >> level & 1) << axis for axis in range(3))
        data += int((2 if level == 0 else 3) << 2 * child).to_bytes(2, "little")
    return data


def test_a_map_that_is_sent_once_is_taken_when_its_frame_is_known(start_node):
    octomap_msgs = pytest.importorskip("octomap_msgs.msg", reason="octomap_msgs is not installed")
    running = start_node()
    client = running.client_node.create_client(ForgetSources, "/arm_planner/forget_sources")
    assert client.wait_for_service(10)
    leaf = octomap_msgs.Octomap(binary=True, id="OcTree", resolution=0.1)
    leaf.data = np.frombuffer(octree_of((-7, 6, 1)), np.int8).tolist()
    for frame in ("moon", "neck"):
        leaf.header.frame_id = frame
        running.publisher(octomap_msgs.Octomap, "/arm_planner/octomap", LATCHED).publish(leaf)
        running.wait_until(lambda frame=frame: f"'octomap/{frame}'" in running.problem, 20)
    assert running.plan(request()).code == codes.INVALID_OBJECT_NAME
    assert running.call(client, ForgetSources.Request(sources=["octomap/moon"])).forgotten == ["octomap/moon"]
    running.publisher(String, "/robot_description", LATCHED).publish(
        String(data=ROBOT.replace("</robot>", HEAD))
    )  # another robot, which has the frame
    running.wait_until(lambda: running.facts["obstacles"] == "1" and not running.problem, 60)
    blocked = running.plan(request(goals=[(0.82, 0.0, 0.0)]))
    assert blocked.code == codes.GOAL_IN_COLLISION and "octomap/neck" in blocked.message, blocked.message


def test_a_voxel_grid_of_nav2(start_node):
    nav2_msgs = pytest.importorskip("nav2_msgs.msg", reason="nav2_msgs is not installed")
    running = start_node()
    grid = nav2_msgs.VoxelGrid(size_x=3, size_y=2, size_z=4)
    grid.header.frame_id = "plate"
    grid.resolutions.x, grid.resolutions.y, grid.resolutions.z = 0.1, 0.1, 0.05
    grid.origin.x, grid.origin.y, grid.origin.z = -0.9, 0.6, 0.0
    marked, unknown, free = (1 << 2 | 1 << 18), 1 << 2, 0
    grid.data = [unknown, free, marked, free, unknown, free]
    running.publisher(nav2_msgs.VoxelGrid, "/arm_planner/voxel_grid", LATCHED).publish(grid)
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    blocked = running.plan(request(goals=[(0.82, 0.0, 0.0)]))
    assert blocked.code == codes.GOAL_IN_COLLISION and "voxel_grid/plate" in blocked.message, blocked.message
    assert running.plan(request(goals=[(0.4, 0.0, 0.0)])).code == SUCCESS


def test_frames_of_tf2(start_node):
    pytest.importorskip("tf2_ros", reason="tf2_ros is not installed")
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    running = start_node()
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = "plate", "camera"
    x, y, z, w = Rotation.from_euler("z", 90, degrees=True).as_quat()
    r, t = message.transform.rotation, message.transform.translation
    r.x, r.y, r.z, r.w, t.x, t.y = x, y, z, w, 1.0, 2.0
    running.publish_obstacles(marker(frame="camera"))
    running.wait_until(lambda: "'camera'" in running.problem and "tf2" in running.problem)
    publisher = running.publisher(TFMessage, "/tf_static", LATCHED)
    publisher.publish(TFMessage(transforms=[message]))
    goal_at = np.array([-0.62, 0.62, 0.1])  # in the root; where the upper arm passes at shoulder 0.78
    local = Rotation.from_euler("z", -90, degrees=True).apply(goal_at - [1.0, 2.0, 0.0])

    def blocked():
        running.publish_obstacles(marker(position=local, frame="camera"))
        answer = running.plan(request(goals=[(0.78, 0.0, 0.0)]))
        return answer.code == codes.GOAL_IN_COLLISION and "test/0" in answer.message

    running.wait_until(blocked)
    assert running.problem == ""


def test_frames_of_one_of_several_robots(start_node):
    """With a prefix the robot's frames are called so in messages, in tf2 and in RViz."""
    pytest.importorskip("tf2_ros", reason="tf2_ros is not installed")
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    running = start_node(frame_prefix="left/")
    shown = running.received(MarkerArray, "/arm_planner/markers", LATCHED)
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = "left/plate", "left/camera"
    message.transform.rotation.w, message.transform.translation.x = 1.0, -1.0
    running.publisher(TFMessage, "/tf_static", LATCHED).publish(TFMessage(transforms=[message]))
    goal_at = np.array([-0.62, 0.62, 0.1])  # in the root; where the upper arm passes at shoulder 0.78
    for frame, offset in (("left/plate", [0.0, 0.0, 0.0]), ("left/camera", [1.0, 0.0, 0.0])):

        def blocked(frame=frame, offset=offset):
            running.publish_obstacles(marker(position=goal_at + offset, frame=frame))
            return running.plan(request(goals=[(0.78, 0.0, 0.0)])).code == codes.GOAL_IN_COLLISION

        running.wait_until(blocked, 60)
        running.publish_obstacles(marker(action=Marker.DELETE))
    running.wait_until(lambda: any(one.header.frame_id == "left/plate" for message in shown for one in message.markers))


def test_voxels_that_are_the_robots_own_are_left_out(start_node):
    """A cell in the fore arm, and one that blocks a goal: with a padding only the second one counts."""
    octomap_msgs = pytest.importorskip("octomap_msgs.msg", reason="octomap_msgs is not installed")
    running = start_node(voxels_padding=0.0)
    running.move_to(0.0, 0.0, 0.0)
    inside, beside = (0, 6, 1), (-7, 6, 1)
    for cell, number in ((inside, "0"), (beside, "1")):
        tree = octomap_msgs.Octomap(binary=True, id="OcTree", resolution=0.1)
        tree.header.frame_id = "plate"
        tree.data = np.frombuffer(octree_of(cell), np.int8).tolist()
        running.publisher(octomap_msgs.Octomap, "/arm_planner/octomap", LATCHED).publish(tree)
        running.wait_until(lambda number=number: running.facts["obstacles"] == number)
        if cell == inside:
            assert running.plan(request(goals=[(0.4, 0.0, 0.0)])).code == SUCCESS
    assert running.plan(request(goals=[(0.82, 0.0, 0.0)])).code == codes.GOAL_IN_COLLISION


def test_only_the_parts_of_a_large_voxel_that_are_near_are_left_out():
    """Against every cell by itself."""
    from gpu_planners.nodes.arm.cloud_topics import without_own

    centre, radius, size = np.array([0.11, 0.07, 0.02]), 0.3, np.array([0.1, 0.1, 0.05])
    T = np.eye(4)
    T[:3, 3] = 0.03, -0.02, 0.01

    def near(points, distance):
        return np.linalg.norm(points - centre, axis=1) <= radius + distance

    cells, extents = np.array([[0, 0, 0], [8, 0, 0], [-4, 2, 1], [-8, -8, -8]]), np.array([8, 1, 2, 4])
    kept, sizes = without_own(cells, extents, size, T, near)
    covered = {tuple(c + np.array(o)) for c, e in zip(kept, sizes) for o in np.ndindex(e, e, e)}
    every = {tuple(c + np.array(o)) for c, e in zip(cells, extents) for o in np.ndindex(e, e, e)}
    own = {c for c in every if near(((np.array(c) + 0.5) * size + T[:3, 3])[None], np.linalg.norm(size) / 2)[0]}
    assert own and covered == every - own and sum(sizes**3) == len(covered)
