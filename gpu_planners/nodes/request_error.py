"""Errors that answer a request with a code."""

from ..errors import GpuPlannersError


class RequestError(GpuPlannersError):
    """A request that cannot be answered.

    code: the number that the answer carries
    """

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def code_of(error, codes, otherwise):
    """The code that answers an exception. codes: {error type: code}, the first that fits counts"""
    if isinstance(error, RequestError):
        return error.code
    return next((code for kind, code in codes.items() if isinstance(error, kind)), otherwise)
