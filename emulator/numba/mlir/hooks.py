"""Changes of the lowering to MLIR that preserve columns and array names in the LLVM IR. They change no result."""

from __future__ import annotations

from typing import Any

from numba_cuda_mlir import mlir_lowering
from numba_cuda_mlir._mlir import ir as mlir
from numba_cuda_mlir.lowering import cuda as cuda_lowering
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir

from ...span import Span
from ..marks import MARKS, POSITIONS, preserve_columns, variable_name
from ..packages import NUMBA_CUDA_MLIR
from ..positions import PositionLine


def install_hooks() -> None:
    """Replace the functions of the package."""
    preserve_columns(NUMBA_CUDA_MLIR)
    _preserve_positions()
    _preserve_names()


def _preserve_positions() -> None:
    """Give locations of MLIR the number of their position as their line."""
    original = mlir_lowering.MLIRLower.get_loc

    def get_loc(self: Any, loc: Any) -> Any:
        if not MARKS.active:
            return original(self, loc)
        line = loc.line
        number = (
            line.number if isinstance(line, PositionLine) else POSITIONS.number(Span(loc.filename, line, 1, line, 1))
        )
        return numba_ir.Loc(loc.filename, number, 0)

    mlir_lowering.MLIRLower.get_loc = get_loc


def _preserve_names() -> None:
    """Add the variable of a shared array, whether its integers are unsigned, and its position to its symbol."""
    original = cuda_lowering.cuda_static_shared_memory

    def named(lower: Any, target: Any, static_shape: Any, dtype: Any, alignas: Any) -> None:
        original(lower, target, static_shape, dtype, alignas)
        if not MARKS.active:
            return
        type = lower.get_numba_type(target.name).dtype
        unsigned = isinstance(type, types.Integer) and not type.signed
        array = lower.load_var(target).owner
        before = mlir.FlatSymbolRefAttr(array.attributes["name"]).value
        variable = variable_name(NUMBA_CUDA_MLIR, lower.blocks, target) or "array"
        name = f"{before}.simtbed.{variable}.{'u' if unsigned else 's'}.{lower.loc.line}"
        array.attributes["name"] = mlir.FlatSymbolRefAttr.get(name)
        for operation in lower.mlir_gpu_module.bodyRegion.blocks[0]:
            symbol = operation.attributes.get("sym_name")
            if symbol is not None and mlir.StringAttr(symbol).value == before:
                operation.attributes["sym_name"] = mlir.StringAttr.get(name)

    cuda_lowering.cuda_static_shared_memory = named
