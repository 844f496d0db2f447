"""NumPy files that anybody may have written: an array, or an error of the package that names the file."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_planners.cli.trajectory_files import read_table
from gpu_planners.errors import GpuPlannersError, GridMapError, ObstacleError
from gpu_planners.files import read_array, read_arrays
from gpu_planners.fleet import Guidance
from gpu_planners.grid import GridMap, MapRows
from gpu_planners.papers.dl14.image import ImageChecker

MOST = 1 << 20
GRID = GridMap(np.ones((6, 7), np.uint8), 4)


def archive(**arrays):
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    return data.getvalue()


def array(values, **how):
    data = io.BytesIO()
    np.save(data, values, **how)
    return data.getvalue()


MOVES = np.ones((6, 7, 4), np.uint8)
GOOD = archive(moves=MOVES, unit=np.int64(1), turn=np.int64(1))
HEADER = array(np.zeros(3))


class Unpickled:
    """Raises where somebody loads it."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


BAD = {
    "empty": (b"", "cannot be read"),
    "a byte": (b"P", "cannot be read"),
    "text": (b"no guidance", "cannot be read"),
    "cut off": (GOOD[: len(GOOD) // 2], "cannot be read"),
    "a pickle": (pickle.dumps(Unpickled()), "cannot be read"),
    "pickled moves": (archive(moves=np.array([Unpickled()]), unit=1, turn=1), "cannot be read"),
    "an array": (array(MOVES), "cannot be read"),
    "an archive of no arrays": (archive(), "has no array 'moves'"),
    "an archive without unit": (archive(moves=MOVES), "has no array 'unit'"),
    "wrong shape": (archive(moves=MOVES[..., :3], unit=1, turn=1), r"moves is uint8 \(6, 7, 3\)"),
    "wrong type": (archive(moves=MOVES * 1.0, unit=1, turn=1), "moves is float64"),
    "costs too high": (archive(moves=MOVES * 200, unit=1, turn=1), "moves costs 200 .. 200; allowed: 1 .. 123"),
    "a unit of a half": (archive(moves=MOVES, unit=0.5, turn=1), "'unit' is float64"),
    "several units": (archive(moves=MOVES, unit=[1, 1], turn=1), r"'unit' is int64 \(2,\)"),
    "a turn of texts": (archive(moves=MOVES, unit=1, turn="1"), "'turn' is <U1"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_of_guidance_is_named(name, tmp_path):
    data, text = BAD[name]
    file = tmp_path / "guidance.npz"
    file.write_bytes(data)
    with pytest.raises(GridMapError, match=f"guidance '.*guidance.npz'.*{text}"):
        Guidance.load(file)


@given(st.data())
def test_a_damaged_file_of_guidance_is_guidance_or_an_error(tmp_path_factory, data):
    """Bytes of a good one are changed, cut out or put in."""
    file, damaged = tmp_path_factory.getbasetemp() / "damaged.npz", bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged)))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    file.write_bytes(damaged)
    try:
        found = Guidance.load(file)
    except GridMapError as error:
        assert "damaged.npz" in str(error)
    else:
        assert found.moves.ndim == 3


@given(st.data())
def test_a_damaged_array_is_an_array_or_an_error_for_all_that_read_one(tmp_path_factory, data):
    file, damaged = tmp_path_factory.getbasetemp() / "damaged.npy", bytearray(HEADER)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    file.write_bytes(damaged)
    for read in (read_table, MapRows.of_file, lambda path: read_array(path, "the array", GridMapError, MOST)):
        try:
            read(file)
        except GpuPlannersError as error:
            assert "damaged.npy" in str(error)


HEADERS = {
    "no end": "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
    "a bracket": "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}]",
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000000000000), }",
    "longer than 64 bits": "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }",
    "a type of objects": "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "no type": "{'descr': [1, 2], 'fortran_order': False, 'shape': (3,), }",
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("version", [1, 2])
def test_bad_headers_are_named(name, version, tmp_path):
    header = HEADERS[name].encode() + b"\n"
    file = tmp_path / "bad.npy"
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    file.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + header + bytes(24))
    for read in (read_table, MapRows.of_file, lambda path: read_array(path, "the array", GridMapError, MOST)):
        with pytest.raises(GpuPlannersError, match="bad.npy"):
            read(file)


def test_an_archive_is_not_unpacked_beyond_its_limit(tmp_path):
    file = tmp_path / "bomb.npz"
    file.write_bytes(archive(zeros=np.zeros(MOST, np.uint8)))
    assert file.stat().st_size < MOST // 100
    with pytest.raises(GridMapError, match=r"the archive '.*bomb.npz' .* unpacks to 10\d+ bytes; allowed: 1048576"):
        read_arrays(file, "the archive", GridMapError, MOST)


def test_an_archive_that_wants_a_password_or_another_packer_is_named(tmp_path):
    for flag, method in ((1, zipfile.ZIP_STORED), (0, 99)):
        data = bytearray(archive(moves=MOVES))
        for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            begin = data.index(mark) + at
            data[begin] |= flag
            data[begin + 2 : begin + 4] = method.to_bytes(2, "little")
        file = tmp_path / "other.npz"
        file.write_bytes(data)
        with pytest.raises(GridMapError, match="guidance '.*other.npz' cannot be read: "):
            Guidance.load(file)


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + bytes(20)], ids=["empty", "cut", "damaged"])
def test_a_bad_image_is_named(data, tmp_path):
    file = tmp_path / "bad.png"
    file.write_bytes(data)
    with pytest.raises(ObstacleError, match="the image '.*bad.png' cannot be read: "):
        ImageChecker(file, device="cpu")
