"""How far work is: told to a callback, or shown on a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from ..errors import SettingsError, shown

SOON_S = 1.0  # work that takes less shows nothing

Progress = Callable[[int, int], object]


@contextlib.contextmanager
def told(what: str, total: int, progress: Progress | None) -> Iterator[Callable[[int], None]]:
    """-> a function that takes how many more are done; with 0, that some time went by.

    progress: called with how many are done and the total; None: a bar on stderr, if that is a terminal
    """
    if not (progress is None or callable(progress)):
        raise SettingsError(f"progress is {shown(progress)}; allowed: a function of two numbers, or None")
    done, began, bar = 0, time.monotonic(), contextlib.ExitStack()
    show: Callable[[int], None] | None = None

    def add(count: int) -> None:
        nonlocal done, show
        done += count
        if progress:
            if count:
                progress(done, total)
        elif show:
            show(done)
        elif time.monotonic() - began > SOON_S and sys.stderr and sys.stderr.isatty():
            show = bar.enter_context(_bar(what, total))
            show(done)

    with bar:
        yield add


@contextlib.contextmanager
def _bar(what, total):
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.update(task, completed=done)
