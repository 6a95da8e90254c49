"""Changes of the lowering to MLIR that preserve columns and array names in the LLVM IR. They change no result."""

from typing import Any

from numba_cuda_mlir import lowering_utilities as utilities
from numba_cuda_mlir import mlir_lowering, types
from numba_cuda_mlir._mlir import ir as mlir
from numba_cuda_mlir._mlir.dialects import func, llvm, memref
from numba_cuda_mlir.lowering import cuda as cuda_lowering
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir

from ...llvmir.pointers import ELEMENT
from ...span import Span
from ..marks import MARKS, POSITIONS, preserve_columns, variable_name
from ..packages import NUMBA_CUDA_MLIR
from ..positions import PositionLine


def install_hooks() -> None:
    """Replace the functions of the package."""
    preserve_columns(NUMBA_CUDA_MLIR)
    _preserve_positions()
    _preserve_element_accesses()
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
        return numba_ir.Loc(
            loc.filename.strip("<>"), number, 0
        )  # the package drops positions of files such as <string>

    mlir_lowering.MLIRLower.get_loc = get_loc


def _preserve_element_accesses() -> None:
    """Compute the address of an element by a call of an opaque function with its indices and extents (`simtbed.llvmir`)."""
    original = utilities.memref_to_llvm_ptr

    def element_pointer(array: Any, indices: Any, element_type: Any) -> Any:
        type = mlir.MemRefType(array.type)
        if not MARKS.active or not indices or len(indices) != type.rank:
            return original(array, indices, element_type)
        pointer, word = utilities._memref_llvm_pointer_type(type), mlir.IntegerType.get_signless(64)
        buffer, offset, *extents = memref.extract_strided_metadata(array)  # extents, then strides
        base = llvm.addrspacecast(pointer, utilities.memref_data_pointer(buffer))
        flat = utilities.convert(offset, word) + utilities._memref_index_offset(array, indices)
        operands = [base, flat]
        for index, extent in zip(indices, extents, strict=False):
            operands += [utilities.convert(index, word), utilities.convert(extent, word)]
        size, space = utilities.get_type_size_bytes(element_type), utilities.memref_llvm_address_space(type)
        name = f"{ELEMENT}.{type.rank}.{size}.{space}"
        signature = mlir.FunctionType.get([operand.type for operand in operands], [pointer])
        utilities.get_or_insert_function(name, signature, _gpu_module())
        return func.call(result=[pointer], callee=name, operands_=operands)

    for module in (utilities, cuda_lowering):
        module.memref_to_llvm_ptr = element_pointer
    for name in ("array_element_value_load", "array_element_value_store"):
        setattr(utilities, name, _by_pointer(getattr(utilities, name)))


def _by_pointer(access: Any) -> Any:
    """Return an access by the element's address, as the package accesses dynamic shared memory."""

    def accessed(*args: Any, dynamic_shared_memory: bool = False, **options: Any) -> Any:
        return access(*args, dynamic_shared_memory=dynamic_shared_memory or MARKS.active, **options)

    return accessed


def _gpu_module() -> Any:
    """Return the GPU module of the current position."""
    operation = mlir.InsertionPoint.current.block.owner
    while operation.operation.name != "gpu.module":
        operation = operation.operation.parent
    return operation.operation.opview


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
