"""LLVM IR of Numba-CUDA for kernels of one-dimensional arrays of i64, compiled without a GPU, and their Python meaning."""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from simtbed.ir.names import extent, stride
from simtbed.language.types import I64
from simtbed.llvmir.optimising import optimised
from simtbed.llvmir.parameters import ArrayParameter, ConstantParameter, Parameter, ScalarParameter, UnusedPointer

PASSES = (
    "always_inliner", "sroa", "simplify_cfg", "instruction_combine", "simplify_cfg", "aggressive_dce",
    "jump_threading", "simplify_cfg", "global_dead_code_eliminate",
)  # fmt: skip


def array_parameters(name: str) -> list[Parameter]:
    """Return the seven parameters of an array: two pointers to its owner, its size, the size of an element, its data, shape and
    stride."""
    return [
        UnusedPointer(), UnusedPointer(), ScalarParameter(f"{name}_size", I64), ConstantParameter(8, I64),
        ArrayParameter(name, I64, 8), ScalarParameter(extent(name, 0), I64), ScalarParameter(stride(name, 0), I64),
    ]  # fmt: skip


def compiled(function: Callable[..., Any], arrays: tuple[str, ...]) -> tuple[str, str, list[Parameter]]:
    """Return the text of a module, the name of the kernel in it, and its parameters."""
    pytest.importorskip("numba_cuda")
    from numba.cuda.compiler import compile_cuda

    dispatcher: Any = import_module("numba.cuda.dispatcher")
    types: Any = import_module("numba.cuda").types
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    result = compile_cuda(function, types.void, (types.int64[::1],) * len(arrays), cc=(9, 0), lineinfo=True)
    entry = result.fndesc.llvm_func_name
    parameters = [UnusedPointer(), *(p for name in arrays for p in array_parameters(name))]
    return optimised(result.library.llvm_strs, entry, PASSES), entry, parameters
