"""Compiling before the clock of a query starts: once for each kind of checker."""

from collections.abc import Callable

from ...device import told_if_slow

_warm: set[tuple] = set()


def warm_once(what: str, checker, run: Callable[[], object]) -> None:
    """Call run(), which compiles or loads `what`, once for checkers of a kind."""
    if checker.device == "cpu":
        kind = what, "cpu", type(checker.new_scratch())
    else:
        kind = what, checker.device, checker.scratch_sizes
    if kind not in _warm:
        _warm.add(kind)
        with told_if_slow(f"{what} for {checker.device}"):
            run()
