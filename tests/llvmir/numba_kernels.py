"""LLVM IR of Numba-CUDA for kernels of one-dimensional arrays of i64, compiled without a GPU, and their Python meaning."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import pytest
from simtbed.ir.names import extent, stride
from simtbed.language.types import I64
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
    return optimised(result.library.llvm_strs, entry), entry, parameters


def optimised(texts: list[str], entry: str, passes: tuple[str, ...] = PASSES) -> str:
    """Return the module of several texts, linked, with all calls inlined into the entry."""
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
            function.add_function_attribute("alwaysinline")
    module = llvm.parse_assembly(str(module).replace(" noinline ", " ").replace(" optnone ", " "))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_90")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    return str(module)
