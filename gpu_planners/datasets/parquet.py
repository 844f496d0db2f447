"""pyarrow, where it is installed: the extra `dataset`."""

import importlib
from typing import Any

from ..errors import GpuPlannersError


class MissingLibraryError(GpuPlannersError):
    """A library that an extra brings is not installed; the text says how to get it."""


def arrow() -> Any:
    """The module pyarrow, with its part `parquet` loaded. Raises MissingLibraryError."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"data sets need the Python package 'pyarrow' ({error}): pip install 'gpu_planners[dataset]'"
        ) from error
