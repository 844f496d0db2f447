"""Two CUDA devices in one process: at once from two threads, with a clean end. Needs a machine with two."""

import os
import subprocess
import sys

import pytest
from checkout import ROOT

from gpu_planners.device import cuda_problem


def cuda_devices():
    """How many there are."""
    if cuda_problem():
        return 0
    from numba import cuda

    return len(cuda.gpus)


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(cuda_devices() < 2, reason="there are fewer than two CUDA devices")]


def ends_well(script):
    """What a process of its own prints that runs a script, and ends without a crash."""
    head = "import sys; sys.path.insert(0, 'test')\nfrom two_devices import *\n"
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", head + script],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT": "0"},  # what is to be freed is freed at once
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.split()


def test_a_batch_over_two_devices_is_the_same_as_on_one():
    script = "compare(given(), devices='cuda:0,cuda:1')\ncompare(given(), devices='cuda:1')\n"
    assert ends_well(script) == ["same", "same"]


def test_two_threads_use_a_device_each_at_once():
    assert ends_well("both_at_once(given())") == ["same"] * 6


def test_contexts_that_threads_opened_first_outlive_them():
    script = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(1) as thread:\n"
        "    checker = thread.submit(lambda: walled('cuda:1')).result()\n"
        "print(checker.configurations_valid([[0.1, 0.5], [0.5, 0.5]]))\n"
    )
    assert ends_well(script) == ["[", "True", "False]"]


def test_grids_over_two_devices():
    assert ends_well("compare_grids('cuda:0,cuda:1')") == ["same"]
