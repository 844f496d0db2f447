"""Errors that answer a request with a code."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import GpuPlannersError


class RequestError(GpuPlannersError):
    """A request that cannot be answered.

    code: the number that the answer carries
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def answered_with(code: int, kind: type[Exception], what: str = "") -> Iterator[None]:
    """Have errors of a kind, as the library raises them, answer the request with a code. what: their text begins so"""
    try:
        yield
    except kind as error:
        raise RequestError(code, f"{what}{error}") from error


class NotBegunError(GpuPlannersError):
    """A request that is not begun: too many wait already, what it needs is being compiled, or the node is ending."""


def code_of(error: Exception, codes: Mapping[type[Exception], int], otherwise: int) -> int:
    """The code that answers an exception. codes: {error type: code}, the first that fits counts"""
    if isinstance(error, RequestError):
        return error.code
    return next((code for kind, code in codes.items() if isinstance(error, kind)), otherwise)


def check_count(what: str, count: int, parameter: str, values: Any, code: int) -> None:
    """RequestError where a message holds more of something than a parameter of the node allows.

    what: plural, for instance "goals"; values: NodeParameters
    """
    allowed = getattr(values, parameter)
    if count > allowed:
        raise RequestError(code, f"there are {count} {what}; allowed: up to {allowed}, the parameter {parameter}")
