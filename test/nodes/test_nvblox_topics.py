"""What nvblox publishes, as obstacles of the arm node: by plain loops, and in pieces."""

from types import SimpleNamespace as Message

import numpy as np
import pytest
from node_harness import RunningNode
from running_node import starter

from gpu_planners.errors import GpuPlannersError, SettingsError
from gpu_planners.nodes.arm.cloud_topics import without_own
from gpu_planners.nodes.arm.nvblox_topics import LayerKeeper, cells_in, layer_bricks, slice_bricks
from gpu_planners.nodes.arm.parameters import ArmParameters

UNKNOWN = 1000.0
start_node = starter(RunningNode)


def slice_of(distances, size=0.1, **more):
    """distances: (columns along x, rows along y)"""
    origin = Message(x=-1.0, y=2.0, z=0.5)
    data = np.asarray(distances, np.float32).T.ravel().tolist()
    width, height = np.shape(distances)
    return Message(
        **dict(width=width, height=height, resolution=size, origin=origin, unknown_value=UNKNOWN, data=data) | more
    )


@pytest.mark.parametrize("heights", [(), (0.2, 1.4)])
@pytest.mark.parametrize("unknown", ["occupied", "free"])
def test_a_slice_is_the_cells_that_it_does_not_prove_free(heights, unknown):
    rng = np.random.default_rng(0)
    distances = rng.uniform(-0.1, 0.3, (7, 12)).astype(np.float32)
    distances[2, 3], distances[4, 4] = UNKNOWN, np.nan
    values = ArmParameters(slice_heights=heights, slice_error=0.01, slice_unknown=unknown)
    bricks = slice_bricks("s", slice_of(distances), np.eye(4), values)
    half = 0.1 * np.sqrt(2 if heights else 3) / 2
    expected = set()
    for x, y in np.ndindex(distances.shape):
        d = float(distances[x, y])
        known = np.isfinite(d) and d != UNKNOWN
        if (d - 0.01 <= half) if known else unknown == "occupied":
            expected.add((x, y, 0))
    assert set(map(tuple, cells_in(bricks).tolist())) == expected
    low, high = heights or (0.45, 0.55)
    assert np.allclose(bricks.poses[:, 2, 3], (low + high) / 2) and np.allclose(
        2 * bricks.half_extents[:, 2], high - low
    )
    first = bricks.poses[:, :2, 3] - bricks.half_extents[:, :2]
    assert np.allclose(first, [-1.0, 2.0] + 0.1 * bricks.low[:, :2])


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(width=8), ["'s'", "84 distances", "96"]),
        (dict(resolution=0.0), ["'s'", "size"]),
        (dict(resolution=float("nan")), ["'s'", "size"]),
        (dict(width=2**31, height=2**31), ["cells in a distance slice", "points_max"]),
        (dict(origin=Message(x=float("inf"), y=0.0, z=0.0)), ["'s'"]),
    ],
)
def test_wrong_slices_are_refused(change, words):
    message = slice_of(np.ones((7, 12)), **change)
    with pytest.raises(GpuPlannersError) as error:
        slice_bricks("s", message, np.eye(4), ArmParameters())
    assert all(word in str(error.value) for word in words), str(error.value)


def piece(blocks, clear=False, size=0.1, **more):
    """blocks: {index: cells}"""
    centres = [[Message(**dict(zip("xyz", (np.array(c) + 0.5) * size))) for c in cells] for cells in blocks.values()]
    return Message(
        **dict(
            header="h",
            voxel_size_m=size,
            clear=clear,
            block_indices=[Message(**dict(zip("xyz", index))) for index in blocks],
            blocks=[Message(centers=each) for each in centres],
        )
        | more
    )


def test_a_layer_comes_in_pieces():
    keeper = LayerKeeper(lambda: 100)

    def cells():
        return set(map(tuple, cells_in(layer_bricks("v", keeper.layers["v"], np.eye(4))).tolist()))

    keeper.take("v", piece({(0, 0, 0): [(0, 0, 0), (7, 7, 7)], (-1, 0, 0): [(-8, 0, 3)]}, clear=True))
    assert cells() == {(0, 0, 0), (7, 7, 7), (-8, 0, 3)}
    keeper.take("v", piece({(0, 0, 0): [(1, 1, 1)], (0, 0, 1): [(0, 0, 8)]}))
    assert cells() == {(1, 1, 1), (-8, 0, 3), (0, 0, 8)}
    keeper.take("v", piece({(0, 0, 0): []}))
    assert cells() == {(-8, 0, 3), (0, 0, 8)}
    keeper.take("v", piece({(5, 5, 5): [(40, 40, 40)]}, clear=True))
    assert cells() == {(40, 40, 40)}
    keeper.forget("v")
    keeper.take("v", piece({}))
    assert cells() == set()


@pytest.mark.parametrize(
    "wrong, words",
    [
        (piece({(0, 0, 0): [(0, 0, 0)]}, block_indices=[]), "0 indices of 1 blocks"),
        (piece({(0, 0, 0): [(0, 0, 0)]}, size=0.2), "another size only"),
        (piece({}, voxel_size_m=float("nan")), "voxels of nan m"),
        (piece({(0, 0, k): [(0, 0, n) for n in range(8)] for k in range(20)}), "160 voxels.*points_max"),
    ],
)
def test_a_layer_with_a_hole_is_refused_until_one_is_whole(wrong, words):
    keeper = LayerKeeper(lambda: 100)
    keeper.take("v", piece({(0, 0, 0): [(0, 0, 0)]}, clear=True))
    keeper.take("v", wrong)
    for _ in range(2):
        with pytest.raises(GpuPlannersError, match=words):
            layer_bricks("v", keeper.layers["v"], np.eye(4))
        assert not keeper.layers["v"].blocks  # nor is anything kept
        keeper.take("v", piece({(0, 0, 3): [(0, 0, 30)]}))
    keeper.take("v", piece({(0, 0, 3): [(0, 0, 30)]}, clear=True))
    assert len(layer_bricks("v", keeper.layers["v"], np.eye(4))) == 1


def test_voxels_that_are_no_place_are_refused():
    keeper = LayerKeeper(lambda: 100)
    keeper.take("v", piece({(0, 0, 0): [(0, 0, float("nan"))]}))
    with pytest.raises(GpuPlannersError, match="finite"):
        layer_bricks("v", keeper.layers["v"], np.eye(4))


def test_the_robots_own_voxels_are_left_out():
    keeper = LayerKeeper(lambda: 100)
    keeper.take("v", piece({(0, 0, 0): [(x, 0, 0) for x in range(8)]}))
    seen = layer_bricks(
        "v", keeper.layers["v"], np.eye(4), lambda *cells: without_own(*cells, lambda points, _: points[:, 0] < 0.41)
    )
    assert set(map(tuple, cells_in(seen).tolist())) == {(x, 0, 0) for x in range(4, 8)}


@pytest.mark.parametrize("heights", [(0.0,), (1.0, 0.5), (0.0, 0.0)])
def test_heights_are_two(heights):
    with pytest.raises(SettingsError, match="slice_heights"):
        ArmParameters(slice_heights=heights)


def test_a_slice_and_a_layer_of_nvblox(start_node):
    nvblox_msgs = pytest.importorskip("nvblox_msgs.msg", reason="nvblox_msgs is not installed")
    geometry_msgs = pytest.importorskip("geometry_msgs.msg")
    running = start_node()
    message = nvblox_msgs.VoxelBlockLayer(voxel_size_m=0.1, block_size_m=0.8, clear=True)
    message.header.frame_id = "plate"
    message.block_indices = [nvblox_msgs.Index3D(x=-1, y=0, z=0)]
    message.blocks = [nvblox_msgs.VoxelBlock(centers=[geometry_msgs.Point32(x=-0.65, y=0.65, z=0.15)])]
    running.publisher(nvblox_msgs.VoxelBlockLayer, "/arm_planner/voxel_blocks", 10).publish(message)
    running.wait_until(lambda: running.facts["obstacles"] == "1")
    message = nvblox_msgs.DistanceMapSlice(width=1, height=1, resolution=0.1, unknown_value=UNKNOWN, data=[-1.0])
    message.header.frame_id = "plate"
    running.publisher(nvblox_msgs.DistanceMapSlice, "/arm_planner/distance_slice", 10).publish(message)
    running.wait_until(lambda: running.facts["obstacles"] == "2")
