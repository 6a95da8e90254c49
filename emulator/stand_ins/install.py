"""Replacement of PyCUDA and CuPy in a process, before a script imports them."""

import sys
from collections.abc import Iterable
from importlib import import_module

from ..errors import SimtbedError

LIBRARIES = {"pycuda": "pycuda_modules", "cupy": "cupy_modules"}
"""The stand-in of each library, which lists its modules."""


def install(names: Iterable[str]) -> None:
    """Put the stand-ins into `sys.modules`, whether the libraries are installed or not. Raises SimtbedError for other names."""
    for name in names:
        if name not in LIBRARIES:
            raise SimtbedError(f"{name} is not emulated; {' and '.join(LIBRARIES)} are")
        sys.modules.update(import_module(f"{__package__}.{LIBRARIES[name]}").modules())
