"""Checks read odd meshes as the planners do: Collada's unit, a flat mesh, a file that holds nothing."""

import numpy as np
import pytest
import trimesh
from collada_files import write_dae

pytest.importorskip("pinocchio", reason="needs pinocchio and coal (extra `test`)")

from gpu_planners.arm import load_urdf  # noqa: E402
from gpu_planners.verify import CoalScene  # noqa: E402

BALL = {"type": "sphere", "radius": 0.05}


@pytest.fixture
def folder(tmp_path):
    inch = '<unit name="inch" meter="0.0254"/>'
    write_dae(tmp_path / "inch.dae", inch)
    write_dae(tmp_path / "none.dae", inch, geometry="", inside="")
    trimesh.Trimesh([[0, -1, -1], [0, 1, -1], [0, 1, 1]], [[0, 1, 2]]).export(tmp_path / "flat.stl")
    return tmp_path


def robot(*meshes):
    bodies = "".join(f'<collision><geometry><mesh filename="{mesh}"/></geometry></collision>' for mesh in meshes)
    return f"""<robot name="r"><link name="base"/><link name="arm">{bodies}</link>
        <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/></joint></robot>"""


@pytest.mark.parametrize(
    "meshes, gap",
    [
        (['inch.dae" scale="2 1 1'], 0.2 - 0.0508 - 0.05),
        (["none.dae", "inch.dae"], 0.2 - 0.0254 - 0.05),
        (["flat.stl"], 0.2 - 0.05),
    ],
)
@pytest.mark.parametrize("how", ["triangles", "hulls"])
def test_odd_meshes_of_a_robot(meshes, gap, how, folder):
    text = robot(*meshes)
    scene = CoalScene(text, None, [{**BALL, "position": [0.2, 0, 0]}], [folder], meshes=how)
    assert scene.distance(np.zeros(1)) == pytest.approx(gap, abs=1e-6)
    model = load_urdf(text, package_dirs=[folder])
    poses = [
        model.frame_poses(np.zeros(1))[0, frame] @ shape.pose for shape, frame in zip(model.shapes, model.shape_frame)
    ]
    ends = [(shape.vertices @ T[:3, :3].T + T[:3, 3])[:, 0].max() for shape, T in zip(model.shapes, poses)]
    assert 0.2 - max(ends) - 0.05 == pytest.approx(gap, abs=1e-6)


def test_the_unit_of_an_obstacle_counts(folder):
    text = robot("flat.stl")
    inch = {"type": "mesh", "file": str(folder / "inch.dae"), "position": [0.1, 0, 0]}
    scene = CoalScene(text, None, [{**inch, "scale": -1.0}], [folder])
    assert scene.distance(np.zeros(1)) == pytest.approx(0.1 - 0.0254, abs=1e-8)
