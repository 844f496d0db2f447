"""gpu-planners completion: what makes a shell complete the command, by argcomplete."""

import argparse

from .errors import require


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    require("argcomplete", "completion", "pip install argcomplete")
    import argcomplete

    print(argcomplete.shellcode(["gpu-planners"], shell=options.shell))
