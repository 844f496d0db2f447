"""Every reader answers any bytes, or raises an error of the package with a text, soon and in little memory.

The inputs are those of test/corpus, sound ones and what found something once, and edits of them. `python -m
soundness.fuzz` looks longer, guided by the branches that an input takes.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_planners.errors import GpuPlannersError
from soundness.readers import CORPUS, READERS, attack, corpus, edited

NEEDS = {"mjcf": "mujoco", "dataset": "pyarrow", "manifest": "pyarrow", "dae": "collada"}
EXAMPLES = 30 * int(os.environ.get("GPU_PLANNERS_STATES", 1))
EDITS = st.lists(st.tuples(*[st.integers(0, 1 << 20)] * 3), min_size=1, max_size=4)


@pytest.fixture(params=READERS)
def reader(request, tmp_path):
    if needed := NEEDS.get(request.param):
        pytest.importorskip(needed)
    READERS[request.param].beside(tmp_path)
    return request.param, READERS[request.param], tmp_path


def test_every_reader_has_a_corpus():
    assert {folder.name for folder in CORPUS.iterdir()} == set(READERS)


def test_the_corpus(reader):
    """Sound inputs are read, and what once found something is answered."""
    name, reader, folder = reader
    for file in sorted((CORPUS / name).iterdir()):
        assert not attack(reader, file.read_bytes(), folder), file
    sound = sorted((CORPUS / name).glob("sound_0*"))[0]
    (folder / f"input{reader.suffix}").write_bytes(sound.read_bytes())
    try:
        reader.read(folder / f"input{reader.suffix}")
    except GpuPlannersError as error:
        assert name.startswith("vda5050") and "version" in str(error), error  # of the other version


def test_edited_inputs(reader):
    name, reader, folder = reader
    seeds = corpus(name)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(st.integers(0, len(seeds) - 1), EDITS)
    def answers(seed, edits):
        found = attack(reader, reader.mended(edited(seeds[seed], edits)), folder)
        assert not found, found

    answers()


def test_a_defect_is_a_finding(tmp_path):
    """What `attack` says of readers that are wrong."""
    from soundness.readers import Reader

    def raises(error):
        def read(path):
            raise error

        return Reader(".x", read, ())

    assert attack(raises(KeyError("a")), b"", tmp_path).startswith("KeyError in")
    assert "0 characters" in attack(raises(GpuPlannersError("")), b"", tmp_path)
    assert not attack(raises(GpuPlannersError("it is wrong; allowed: right")), b"", tmp_path)
    held = []
    assert "MiB" in attack(Reader(".x", lambda path: held.append(b"\1" * (600 << 20)), ()), b"", tmp_path)
