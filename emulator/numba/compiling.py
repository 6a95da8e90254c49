"""Compilation of a kernel for its argument types: Python to Numba's LLVM IR, then LLVM's passes over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from numba.cuda import types
from numba.cuda.compiler import compile_cuda
from numba.cuda.core.errors import NumbaDebugInfoWarning

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
    return CompiledFunction(optimised(result.library.llvm_strs, entry), entry, result)


def optimised(texts: Sequence[str], entry: str) -> str:
    """Return the modules as one, with all calls inlined into the entry function, after `PASSES`."""
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
            function.add_function_attribute("alwaysinline")
    # Both attributes exclude `alwaysinline`.
    module = llvm.parse_assembly(str(module).replace(" noinline ", " ").replace(" optnone ", " "))
    builder = llvm.create_pass_builder(_target_machine(), llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return str(module)


def _target_machine() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_90")
