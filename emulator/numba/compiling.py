"""Compilation of a kernel for its argument types: Python to Numba's LLVM IR, then LLVM's passes over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.compiler import compile_cuda
from numba.cuda.core.errors import NumbaDebugInfoWarning

from ..llvmir.optimising import optimised
from .marks import MARKS

PASSES = (
    "always_inliner", "sroa", "simplify_cfg", "instruction_combine", "sroa", "simplify_cfg", "sccp",
    "instruction_combine", "dead_store_elimination", "simplify_cfg", "aggressive_dce", "simplify_cfg", "global_dead_code_eliminate",
)  # fmt: skip
"""Passes that remove Numba's structures of arrays, tuples, ranges and calls. They preserve loops: none is unrolled or vectorised."""


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
    before, MARKS.active = MARKS.active, True
    try:
        with warnings.catch_warnings():  # the user did not request positions
            warnings.simplefilter("ignore", NumbaDebugInfoWarning)
            yield
    finally:
        MARKS.active = before


def compile_function(function: Callable[..., Any], argument_types: Sequence[Any], **options: Any) -> CompiledFunction:
    """Compile a kernel for the emulator. options: of `compile_cuda`. Raises Numba's errors."""
    with recording():
        result = compile_cuda(function, types.void, tuple(argument_types), lineinfo=True, **options)
    entry = result.fndesc.llvm_func_name
    return CompiledFunction(optimised(result.library.llvm_strs, entry, PASSES), entry, result)
