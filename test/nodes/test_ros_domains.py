"""Test processes of one machine have ROS domains of their own."""

import os
import subprocess
import sys
from pathlib import Path


def test_processes_that_run_at_once_have_other_domains():
    code = "import os, conftest; print(os.environ['ROS_DOMAIN_ID'], flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = []
    try:
        for _ in range(3):
            started.append(subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[1], **pipes))
        domains = [int(one.stdout.readline()) for one in started]
    finally:
        for one in started:
            one.communicate("\n", timeout=60)
    taken = [*domains, int(os.environ["ROS_DOMAIN_ID"])]
    assert len(set(taken)) == 4 and all(1 <= domain <= 100 for domain in taken)
