"""Compilation of a kernel for its argument types: Python to Numba's LLVM IR, then LLVM's passes over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.compiler import compile_cuda

from ..llvmir.optimising import optimised
from .marks import active_marks
from .packages import NUMBA_CUDA


@dataclass(frozen=True)
class CompiledFunction:
    """A kernel as LLVM IR. entry: the name of its function. result: Numba's compile result."""

    text: str
    entry: str
    result: Any


@contextmanager
def recording() -> Iterator[None]:
    """Preserve positions, accesses and names in the compilations of this thread."""
    from .hooks import install_hooks  # late: it imports Numba's lowering

    install_hooks()
    with active_marks(NUMBA_CUDA):
        yield


def compile_function(function: Callable[..., Any], argument_types: Sequence[Any], **options: Any) -> CompiledFunction:
    """Compile a kernel for the emulator. options: of `compile_cuda`. Raises Numba's errors."""
    with recording():
        result = compile_cuda(function, types.void, tuple(argument_types), lineinfo=True, **options)
    entry = result.fndesc.llvm_func_name
    return CompiledFunction(optimised(result.library.llvm_strs, entry), entry, result)
