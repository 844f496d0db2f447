"""Tells a callback how far work is, or shows it on a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from ..errors import SettingsError, shown

SOON_S = 1.0  # work that takes less shows nothing

Progress = Callable[[int, int], object]


@contextlib.contextmanager
def told(what: str, total: int, progress: Progress | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes how many more are done, or 0 to let a bar appear and its clock go on.

    progress: called with how many are done and the total; None: a bar on stderr, if that is a terminal
    """
    if not (progress is None or callable(progress)):
        raise SettingsError(f"progress is {shown(progress)}; allowed: a function of two numbers, or None")
    done, began, bar, task = 0, time.monotonic(), None, None

    def add(count: int) -> None:
        nonlocal done, bar, task
        done += count
        if progress:
            if count:
                progress(done, total)
            return
        if bar is None and time.monotonic() - began > SOON_S and sys.stderr and sys.stderr.isatty():
            bar = shown_until_end.enter_context(_bar())
            task = bar.add_task(what, total=total)
        if bar is not None:
            bar.update(task, completed=done)

    with contextlib.ExitStack() as shown_until_end:
        yield add


def _bar():
    from rich import progress as rich
    from rich.console import Console

    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn()
    return rich.Progress(*columns, rich.TimeRemainingColumn(), console=Console(stderr=True), transient=True)
