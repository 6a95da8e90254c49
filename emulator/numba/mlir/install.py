"""Replacement of the driver and of the dispatcher under `numba_cuda_mlir`, once in a process."""

from functools import cache

from ..install import emulated_driver, replace_driver
from ..packages import NUMBA_CUDA_MLIR


@cache
def install() -> None:
    """Have all launches of `numba_cuda_mlir` run on an emulator. Raises UnavailableError for other versions of it."""
    import numba_cuda_mlir.cuda  # noqa: F401  its modules import each other, this one first

    from .dispatch import replace_dispatcher
    from .hooks import install_hooks

    replace_driver(NUMBA_CUDA_MLIR)
    replace_dispatcher(emulated_driver())
    install_hooks()
