"""LLVM functions run by LLVM itself on this machine, one call a thread."""

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy.typing as npt

THREAD = "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"


def run_natively(text: str, arrays: list[npt.NDArray[Any]], threads: int) -> None:
    """Call the function `kernel(ptr ...)` of a module for each thread. The index of the thread is a global variable."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    own = text.replace(THREAD, "load i32, ptr @thread_index").replace(
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "@thread_index = global i32 0"
    )
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(own), machine)
    engine.finalize_object()
    index = ctypes.c_int32.from_address(engine.get_global_value_address("thread_index"))
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(engine.get_function_address("kernel"))
    for thread in range(threads):
        index.value = thread
        kernel(*(array.ctypes.data for array in arrays))
