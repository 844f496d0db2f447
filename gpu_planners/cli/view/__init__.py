"""gpu-planners view: interactive pages in the browser."""

import argparse
import socket
import time
import webbrowser
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..errors import InputError, require

MOST_PORT = 65535
VIEW_EXTRA = "pip install 'gpu_planners[view]'"


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    if sum(map(bool, (options.urdf, options.node, options.map))) != 1:
        raise InputError("give one of: a URDF file, --node NAME, --map FILE")
    _check_address(options.host, options.port)
    if options.map:
        from .map_page import open_map_page

        page: Any = open_map_page(options)
    else:
        require("viser", "the browser view", VIEW_EXTRA)
        from .arm_page import open_arm_page

        page = open_arm_page(options)
    address = f"http://{options.host}:{page.port}"
    Console().print(f"{escape(page.title)} is at [bold]{address}[/]; Ctrl-C ends it", highlight=False, soft_wrap=True)
    if options.open:
        webbrowser.open(address)
    try:
        while True:
            time.sleep(0.5)
    finally:
        page.close()


def _check_address(host, port):
    """Refuse an address at which no server can begin: viser would wait for it for ever."""
    if not 0 <= port <= MOST_PORT:
        raise InputError(f"--port is {port}; allowed: 0 to {MOST_PORT}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]  # any port
        with socket.socket(family) as tried:
            tried.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--host '{host}': {reason}; allowed: an address of this machine, or 0.0.0.0") from None
