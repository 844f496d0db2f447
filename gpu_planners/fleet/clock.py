"""Time limits of whole plans. A deadline is a time of clock_ns(), or NEVER."""

from collections.abc import Iterator

from ..parallel.team import NEVER, clock_ns

PIECE_NS = 10_000_000  # between two checks of the clock


def deadline_after(seconds: float) -> int:
    return int(min(clock_ns() + 1e9 * seconds, NEVER))


def late(deadline: int) -> bool:
    return clock_ns() > deadline


def part_of(deadline: int, share: float) -> int:
    """The deadline of what may take this share of the time that is left."""
    now = clock_ns()
    return deadline if deadline == NEVER else now + int(share * (deadline - now))


def at_least(deadline: int, ns: int) -> int:
    """The deadline, or a later one of what may take so long in any case."""
    return max(deadline, clock_ns() + ns)


def fits(deadline: int, ns: float) -> bool:
    return clock_ns() + ns <= deadline


def pieces(count: int, deadline: int, each_ns: float) -> Iterator[tuple[int, int]]:
    """Pieces (begin, end) of `count` things, as long as there is time for one more. each_ns: of a thing, a guess"""
    begin = 0
    while begin < count and fits(deadline, each_ns):
        end, began = min(count, begin + max(1, int(PIECE_NS / each_ns))), clock_ns()
        yield begin, end
        each_ns = max(1.0, (clock_ns() - began) / (end - begin))
        begin = end
