"""Every reader of files and messages, for `soundness.fuzz` and the tests. test/corpus has a folder for each: sound
inputs, and what found something once.

Whatever bytes a reader gets, it answers, or raises an error of the package with a text that can be read, within
`SECONDS` of computing and `MEBIBYTES` of memory.
"""

import argparse
import contextlib
import functools
import json
import re
import struct
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu_planners.errors import GpuPlannersError

CORPUS = Path(__file__).resolve().parent.parent / "test" / "corpus"
SECONDS = 10.0  # of the processor; a mesh of the greatest size takes longer, but no input here has that
MEBIBYTES = 512  # more than before
MOST_BYTES = 1 << 16  # of an edited input
LONGEST_TEXT = 20_000  # characters of an error


@dataclass(frozen=True)
class Reader:
    """suffix: of the file; read(path); modules: what a fuzzer counts the branches of; beside(folder): makes files that
    inputs name; mended(content): with checksums that fit, so that inputs get beyond them
    """

    suffix: str
    read: Callable[[Path], Any]
    modules: tuple[str, ...]
    beside: Callable[[Path], None] = lambda folder: None
    mended: Callable[[bytes], bytes] = bytes


def corpus(name: str) -> list[bytes]:
    """The inputs that a reader's folder holds."""
    return [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]


def attack(reader: Reader, content: bytes, folder: Path) -> str:
    """What is wrong with the reader's answer to an input: "" or a text, whose first line says where."""
    file = folder / f"input{reader.suffix}"
    file.write_bytes(content)
    before, began = _memory(), time.process_time()
    try:
        reader.read(file)
    except GpuPlannersError as error:
        if not str(error).strip() or len(str(error)) > LONGEST_TEXT:
            return f"an error's text has {len(str(error))} characters: {type(error).__name__}"
    except Exception as error:  # the finding
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if "gpu_planners" in one.filename] or frames
        at = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}"
        return f"{type(error).__name__} in {at}\n{str(error)[:300]}"
    took, grown = time.process_time() - began, (_memory() - before) / 2**20
    if took > SECONDS:
        return f"it took {took:.0f} s"
    return f"it took {grown:.0f} MiB" if grown > MEBIBYTES else ""


TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+|\s+|.", re.DOTALL)
WORDS = b"nan inf -inf 1e999 -1 0 1e-320 1e30 2 65536 2147483648 -9223372036854775809 null true [] {} '' \"\" ../ &a *a"
LONG = b"9" * 400, b"-" + b"9" * 400, b"9" * 5000, b"x" * 2000, b"[" * 2000
BYTES = b"", b" ", b"\n", b"\0", b"\xff", b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0" * 4, b"\0\0\xc0\x7f", b"\0\0\x80\x7f"
HOSTILE = (*WORDS.split(), *LONG, *BYTES, b"<!-- -->", "\u0663\u2028\U0001f916".encode())


def edited(content: bytes, edits: list[tuple[int, int, int]]) -> bytes:
    """The content after some edits (kind, place, value), each any three whole numbers, of its words and signs."""
    for kind, place, value in edits:
        tokens = TOKEN.findall(content)[:20_000] or [b""]
        at, other, hostile = place % len(tokens), value % len(tokens), HOSTILE[value % len(HOSTILE)]
        end = at + 1 + value % 40
        if kind % 8 == 0:
            tokens[at] = hostile
        elif kind % 8 == 1:
            tokens.insert(at, hostile)
        elif kind % 8 == 2:
            del tokens[at:end]
        elif kind % 8 == 3:
            tokens[at:at] = tokens[at:end]
        elif kind % 8 == 4:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind % 8 == 5:
            tokens[at] = tokens[other]
        elif kind % 8 == 6:
            tokens[at] = bytes([value % 256]) + tokens[at][1:]
        else:
            tokens[at:end] = tokens[at:end] * (2 + value % 300)
        content = b"".join(tokens)[:MOST_BYTES]
    return content


def _memory():
    """Bytes of the most that this process has held since this was asked last."""
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    return peak


# ---- robots


def _urdf(path):
    from gpu_planners.arm import load_urdf

    return load_urdf(path)


def _part(folder):
    (folder / "part.stl").write_bytes((CORPUS / "stl/sound_0.stl").read_bytes())


def _arm():
    """A URDF without files beside it."""
    text = (CORPUS / "urdf/sound_0.urdf").read_text()
    return text.replace('<mesh filename="part.stl" scale="0.1 0.1 0.1"/>', '<sphere radius="0.02"/>')


@functools.cache
def _robot():
    return _urdf(_arm())


def _srdf(path):
    from gpu_planners.arm import load_urdf

    return load_urdf(_arm(), path), load_urdf(_arm(), path, group="arm")


def _joint_limits(path):
    from gpu_planners.arm import load_urdf

    return load_urdf(_arm(), limits=path)


def _mjcf(path):
    from gpu_planners.arm.urdf.mjcf import load_mjcf, mjcf_obstacles

    robot = load_mjcf(path)
    return robot, mjcf_obstacles(path, robot)


# ---- meshes and scenes


def _mesh(path):
    from gpu_planners.arm import CollisionWorld
    from gpu_planners.arm.geometry.meshes import load_mesh

    world = CollisionWorld()
    world.add_mesh("mesh", load_mesh("mesh", path), np.eye(4))
    return world


def _scene(path):
    from gpu_planners.arm.collision.scene_file import load_scene

    return load_scene(path)


def _problem_set(path):
    from gpu_planners.datasets.obstacles import read_scenes

    return read_scenes(path, _robot())


def _query(path):
    from gpu_planners.cli.motions import question_of

    return question_of(argparse.Namespace(query=str(path), start=None, goal=[], goal_pose=[], frame=None), _robot())


def _table(path):
    from gpu_planners.cli.trajectory_files import read_path

    return read_path(path, _robot())


# ---- grids


def _maps(folder):
    (folder / "map.pgm").write_bytes((CORPUS / "pgm/sound_0.pgm").read_bytes())


def _map(path):
    from gpu_planners.grid import load_map_yaml
    from gpu_planners.grid.maps.map_files import BEFORE

    return load_map_yaml(path), load_map_yaml(path, rules=BEFORE)


def _picture(path):
    from gpu_planners.grid import load_map_yaml

    described = path.with_suffix(".yaml")
    described.write_text((CORPUS / "map/sound_0.yaml").read_text().replace("map.pgm", path.name))
    return load_map_yaml(described)


def _png_sums(content):
    """A PNG whose parts have the checksums of what they hold."""
    out, at = content[:8], 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        body = content[at + 4 : at + 8 + length]
        out += content[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return out


def _movingai(path):
    from gpu_planners.grid import load_movingai_map

    return load_movingai_map(path)


def _scen(path):
    from gpu_planners.grid import load_movingai_scen

    return load_movingai_scen(path)


def _lattice(path):
    from gpu_planners.grid.poses.lattice_file import read_lattice

    return read_lattice(path, 0.1)


def _guidance(path):
    from gpu_planners.fleet.guidance import Guidance

    return Guidance.load(path)


# ---- fleets: tasks, layouts, messages of VDA 5050


@functools.cache
def _layout():
    from gpu_planners.grid import GridMap
    from gpu_planners.vda5050.layout import Layout

    return Layout(GridMap(np.ones((4, 5), np.uint8), 4, 1.0), stations={"dock": (0, 0)})


def _lif(path):
    from gpu_planners.vda5050.layout import read_lif

    return read_lif(path)


def _errands(path):
    from gpu_planners.vda5050.errands import read_errands

    return [errand.task() for errand in read_errands(path, _layout())]


def _doors(path):
    from gpu_planners.vda5050.layout import read_doors

    return read_doors(path, _layout())


def _zones(path):
    from gpu_planners.vda5050.zones import read_zones

    return read_zones(path, _layout())


def _vda5050(read):
    """What the fleet control does with a payload, in both versions."""

    def taken(path):
        from gpu_planners.vda5050 import messages
        from gpu_planners.vda5050.versions import VERSIONS

        wrong = None
        for version in VERSIONS.values():
            try:
                message = messages.opened(path.read_bytes())
                messages.check_header(message, version, "v", "1")
                getattr(messages, read)(message, version)
            except GpuPlannersError as error:
                wrong = error
        if wrong:
            raise wrong

    return taken


def _errand_message(path):
    from gpu_planners.vda5050.errands import errand_of
    from gpu_planners.vda5050.messages import opened

    return errand_of(opened(path.read_bytes()), _layout()).task()


def _journal(path):
    from gpu_planners.fleet.dispatch.journal import Journal
    from gpu_planners.fleet.dispatch.pool import Pool

    Journal(path, Pool(10), FRAME).close()


FRAME = [4, 5]


def _journal_sums(content):
    from gpu_planners.fleet.dispatch.journal import line_of

    lines = []
    for line in content.split(b"\n"):
        try:
            lines.append(line_of(json.loads(line[9:])))
        except (ValueError, RecursionError):
            lines.append(line + b"\n")
    return b"".join(lines)


def _kept(path):
    from gpu_planners.fleet.execution.kept import read

    return read(path.read_bytes().decode(errors="replace"))


# ---- data sets


def _dataset(path):
    from gpu_planners.datasets import load

    data = load(path)
    for name in data.columns:
        if name != "obstacles":
            getattr(data, name)
    for row in range(len(data)):
        data.path(row), data.world(row)
    return data


def _manifest(path):
    from gpu_planners.datasets.shards import MANIFEST, Shards, problem_of_file, read_manifest

    folder = path.parent / "dataset"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(path.read_bytes())
    shards = Shards(folder, read_manifest(folder))
    return [problem_of_file(shards, number) for number in range(min(shards.count, 3))]


ARM = ("gpu_planners.arm.urdf", "gpu_planners.files")
MESHES = ("gpu_planners.arm.geometry.meshes", "trimesh")
GRIDS = ("gpu_planners.grid.maps", "gpu_planners.files")
SETS = ("gpu_planners.datasets", "gpu_planners.files")
COMMANDS = ("gpu_planners.cli", "gpu_planners.files")
FLEET = ("gpu_planners.vda5050", "gpu_planners.files", "gpu_planners.fleet.dispatch", "gpu_planners.fleet.execution")

READERS: dict[str, Reader] = {
    "urdf": Reader(".urdf", _urdf, (*ARM, MESHES[0]), _part),
    "srdf": Reader(".srdf", _srdf, ARM),
    "mjcf": Reader(".xml", _mjcf, ARM),
    "joint_limits": Reader(".yaml", _joint_limits, ARM),
    **{kind: Reader(f".{kind}", _mesh, MESHES) for kind in ("stl", "obj", "ply", "off", "glb", "dae")},
    "scene": Reader(".yaml", _scene, ("gpu_planners.arm.collision.scene_file", MESHES[0], ARM[1]), _part),
    "problem_set": Reader(".json", _problem_set, SETS),
    "query": Reader(".yaml", _query, COMMANDS),
    "path_csv": Reader(".csv", _table, COMMANDS),
    "path_yaml": Reader(".yaml", _table, COMMANDS),
    "path_npy": Reader(".npy", _table, COMMANDS),
    "map": Reader(".yaml", _map, GRIDS, _maps),
    "pgm": Reader(".pgm", _picture, (*GRIDS, "PIL")),
    "png": Reader(".png", _picture, (*GRIDS, "PIL"), mended=_png_sums),
    "movingai": Reader(".map", _movingai, GRIDS),
    "scen": Reader(".scen", _scen, GRIDS),
    "lattice": Reader(".json", _lattice, ("gpu_planners.grid.poses.lattice_file", ARM[1])),
    "guidance": Reader(".npz", _guidance, ("gpu_planners.files", "gpu_planners.fleet.guidance")),
    "lif": Reader(".lif", _lif, FLEET),
    "errands": Reader(".json", _errands, FLEET),
    "doors": Reader(".json", _doors, FLEET),
    "zones": Reader(".json", _zones, FLEET),
    "vda5050_state": Reader(".json", _vda5050("read_state"), FLEET),
    "vda5050_factsheet": Reader(".json", _vda5050("read_factsheet"), FLEET),
    "vda5050_connection": Reader(".json", _vda5050("read_connection"), FLEET),
    "vda5050_errand": Reader(".json", _errand_message, FLEET),
    "journal": Reader("", _journal, FLEET, mended=_journal_sums),
    "fleet_state": Reader(".json", _kept, FLEET),
    "dataset": Reader(".parquet", _dataset, SETS),
    "manifest": Reader(".json", _manifest, SETS),
}
