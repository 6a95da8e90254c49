"""Fused multiply-add on arrays, correctly rounded: NumPy has none, so Numba compiles LLVM's.

Going through a wider type is not a substitute: f32 through f64 still rounds twice.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


@cache
def _compiled() -> Any:
    # Imported late: a program without fma should not pay for a compiler.
    from llvmlite import ir
    from numba import types, vectorize
    from numba.extending import intrinsic

    @intrinsic
    def llvm_fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
        if a not in (types.float32, types.float64):
            return None

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            kind = context.get_value_type(signature.return_type)
            name = f"llvm.fma.f{signature.return_type.bitwidth}"
            function = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind, [kind] * 3))
            return builder.call(function, args)

        return a(a, b, c), generate

    @vectorize(["float32(float32, float32, float32)", "float64(float64, float64, float64)"])
    def fma(a: Any, b: Any, c: Any) -> Any:
        return llvm_fma(a, b, c)  # type: ignore[call-arg]

    return fma


def fma(a: Values, b: Values, c: Values) -> Values:
    """a * b + c rounded once; arrays of one float type, broadcast together."""
    return np.asarray(_compiled()(a, b, c))
