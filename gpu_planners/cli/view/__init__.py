"""gpu-planners view: interactive pages in the browser."""

import argparse
import time
import webbrowser

from rich.console import Console

from ..errors import InputError, require

VIEW_EXTRA = "pip install 'gpu_planners[view]'"


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    """Serve a page until Ctrl-C."""
    if sum(map(bool, (options.urdf, options.node, options.map))) != 1:
        raise InputError("give one of: a URDF file, --node NAME, --map FILE")
    require("viser", "the browser view", VIEW_EXTRA)
    page = _page(options)
    address = f"http://{options.host}:{page.server.get_port()}"
    Console().print(f"{page.title} is at [bold]{address}[/]; Ctrl-C ends it", highlight=False, soft_wrap=True)
    if options.open:
        webbrowser.open(address)
    try:
        while True:
            time.sleep(0.5)
    finally:
        page.close()


def _page(options):
    if options.map:
        from .grid_page import open_grid_page

        return open_grid_page(options)
    from .arm_page import open_arm_page

    return open_arm_page(options)
