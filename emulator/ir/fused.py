"""Fused multiply-add on arrays, correctly rounded: a loop compiled by LLVM, since NumPy has none.

A wider type is no substitute: f32 through f64 still rounds twice.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]

_LOOP = """
declare {type} @llvm.fma.f{bits}({type}, {type}, {type})
define void @fma{bits}(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %to, i64 %n) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr {type}, ptr %a, i64 %i
  %pb = getelementptr {type}, ptr %b, i64 %i
  %pc = getelementptr {type}, ptr %c, i64 %i
  %va = load {type}, ptr %pa
  %vb = load {type}, ptr %pb
  %vc = load {type}, ptr %pc
  %found = call {type} @llvm.fma.f{bits}({type} %va, {type} %vb, {type} %vc)
  %pto = getelementptr {type}, ptr %to, i64 %i
  store {type} %found, ptr %pto
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@cache
def _compiled(bits: int) -> tuple[Any, Any]:
    """Return the loop for f32 or f64, and the object that owns its code."""
    # Imported late: a program without fma should not pay for a compiler.
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    machine = triple.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_lljit_compiler(machine)
    text = _LOOP.format(type="float" if bits == 32 else "double", bits=bits)
    library = (
        llvm.JITLibraryBuilder().add_ir(text).add_current_process().export_symbol(f"fma{bits}").link(engine, "fma")
    )
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(library[f"fma{bits}"])
    return function, (engine, library)


def fma(a: Values, b: Values, c: Values) -> Values:
    """a * b + c rounded once; arrays of one float type, broadcast together."""
    operands = [np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b, c)]
    result = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c)), operands[0].dtype)
    _compiled(8 * result.dtype.itemsize)[0](*(x.ctypes.data for x in (*operands, result)), result.size)
    return result
