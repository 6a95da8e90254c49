"""Replacement of Triton's driver, once in a process."""

import os
from importlib.metadata import version

from ..errors import UnavailableError

TESTED = ("3.9",)
"""Versions of Triton whose private names are replaced: `driver`."""


def install() -> None:
    """Have Triton's kernels run on an emulator. Raises UnavailableError for another version of Triton."""
    if not version("triton").startswith(TESTED):
        raise UnavailableError(
            f"triton {version('triton')} is not supported: expected {TESTED[-1]}; pip install 'simtbed[triton]'"
        )
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")  # the emulators do not contract a * b + c
    from triton import runtime
    from triton.backends import Backend, backends

    from .benchmarks import replace_benchmarks
    from .driver import EmulatedBackend, EmulatedDriver

    backends.clear()
    backends["nvidia"] = Backend(EmulatedBackend, EmulatedDriver)
    runtime.driver.set_active(EmulatedDriver())
    replace_benchmarks()
