"""From the MLIR of a kernel to its program: the package's passes, LLVM IR as text, LLVM's passes, translation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numba_cuda_mlir import mlir_optimization as optimization
from numba_cuda_mlir._mlir import ir as mlir
from numba_cuda_mlir._mlir.dialects import memref
from numba_cuda_mlir._mlir.passmanager import PassManager
from numba_cuda_mlir.lowering_utilities import constant, context
from numba_cuda_mlir.mlir_lowering import ERROR_CODE_GLOBAL_NAME

from ...errors import LaunchError
from ...language.types import I32
from ...llvmir.optimising import optimised
from ...llvmir.parameters import ArrayParameter, ConstantParameter, Parameter
from ...llvmir.pointers import ELEMENT
from ...llvmir.translate import translate
from ...span import Span
from ..kernel import KernelFacts
from ..marks import POSITIONS
from ..stored_kernels import CompiledKernel
from .parameters import flat_types, parameters_of

if TYPE_CHECKING:
    from ...ir import nodes as ir

ERROR_CODE = ArrayParameter("error_code", I32, 4)
"""The variable of the module in which a kernel records its first exception, as a parameter."""
_FLAGS = re.compile(r"(?<= = )(add|sub|mul|shl|getelementptr)( nuw| nsw| nusw| inbounds)+\b")
_BUFFERS = "one-shot-bufferize"
"""The package's pass that creates temporary buffers on the device's heap."""
_FUNCTION = re.compile(r"^(define .*\{\n)(.*?^\}$)", re.MULTILINE | re.DOTALL)
_LOCAL = re.compile(r"^  %(\d+) = (alloca [^%\n]*)$", re.MULTILINE)
_RENAMED = re.compile(r"^  %local\.\d+ = alloca [^%\n]*\n", re.MULTILINE)
_NAN_EXTREMES = re.compile(r"(?<= = )(atomicrmw f)(max|min)imum\b")
"""Atomic operations for which the package generates `fmax` and `fmin` on a GPU."""
_ELEMENTS = re.compile(rf"^declare ptr.* @{re.escape(ELEMENT)}\..*\)", re.MULTILINE)


def translated(result: Any, function: Any, entry: str) -> tuple[CompiledKernel, ir.Program]:
    """Translate a compile result of the package. function: the kernel in Python. entry: the name of its LLVM function.

    Raises CompileError for a refused construct, LaunchError for a refused argument.
    """
    if result.metadata.get("needs_nrt"):
        raise LaunchError(f"{function.__name__}: arrays that are created in kernels are not supported")
    code = function.__code__
    parameters: list[Parameter] = []
    for name, type in zip(code.co_varnames, result.signature.args, strict=False):
        for own, flat in flat_types(name, type):
            parameters += parameters_of(own, flat)
    text = optimised([_specialised(_llvm_text(result, function.__name__), entry, parameters)], entry)
    if text.count(f"@{ERROR_CODE_GLOBAL_NAME}") > 1:
        text = _with_error_code(text, entry)
        parameters.append(ERROR_CODE)
    translation = translate(
        text,
        entry,
        parameters,
        name=function.__name__,
        span=Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1),
        span_of=lambda position: POSITIONS.spans.get(position.line),
    )
    cooperative = bool(result.metadata.get("use_cooperative"))
    facts = KernelFacts(function.__name__, parameters, translation.arrays, translation.scalars, cooperative)
    return CompiledKernel(facts, entry, {}, False), translation.program


def _llvm_text(result: Any, name: str) -> str:
    """Return the LLVM IR of a compile result after the package's own passes."""
    with context.get_context():
        module = result.metadata["mlir_module"]
        first, last = optimization.get_base_pipeline().split(_BUFFERS)
        PassManager.parse(f"{first}{_BUFFERS})").run(module.operation)
        _move_buffers(module, name)
        PassManager.parse(f"builtin.module({last.lstrip(', ')}").run(module.operation)
        result.metadata["mlir_module_optimized"] = str(module)
        optimization.run_pre_codegen_patterns(module)
        operation = optimization._get_single_gpu_module(module).operation
        operation.attributes["llvm.data_layout"] = mlir.StringAttr.get(optimization.NVPTX64_DATALAYOUT)
        operation.attributes["llvm.target_triple"] = mlir.StringAttr.get(optimization.NVPTX64_TRIPLE)
        text: str = optimization.translate_to_llvmir_text(operation)
        return text


def _move_buffers(module: Any, name: str) -> None:
    """Move temporary numbers from the heap into local memory. They are 0: reductions start from a new buffer of the heap.

    Raises LaunchError for temporary arrays.
    """
    for buffer in optimization.find_ops(module, lambda operation: operation.name == "memref.alloc"):
        type = mlir.MemRefType(buffer.results[0].type)
        if type.rank or not isinstance(type.element_type, mlir.IntegerType | mlir.FloatType):
            raise LaunchError(f"{name}: temporary arrays on the heap of the device are not supported: {type}")
        with mlir.InsertionPoint(buffer), buffer.location:
            local = memref.alloca(type, [], [])
            memref.store(constant(0, type.element_type), local, [])
        buffer.results[0].replace_all_uses_with(local)
        buffer.erase()


def _specialised(text: str, entry: str, parameters: Sequence[Parameter]) -> str:
    """Return a module with the values of constant parameters, and without promises about indices, which may be out of bounds.

    LLVM may move, merge and remove calls of the function of an element's address.
    """
    start = text.index("\n", text.index(f" @{entry}("))
    end = text.index("\n}", start)
    values = {str(n): str(own.value) for n, own in enumerate(parameters) if isinstance(own, ConstantParameter)}
    body = re.sub(r"%(\d+)\b", lambda match: values.get(match[1], match[0]), text[start:end])
    text = _FUNCTION.sub(_with_locals_first, text[:start] + body + text[end:])
    text = _FLAGS.sub(r"\1", text)
    text = _NAN_EXTREMES.sub(r"\1\2", text)
    return _ELEMENTS.sub(r"\g<0> nounwind willreturn speculatable memory(none)", text)


def _with_locals_first(function: re.Match[str]) -> str:
    """Return a function with its local memory in the first block, where LLVM makes registers of it."""
    head, body = function[1], function[2]
    numbers = {number for number, _ in _LOCAL.findall(body)}
    if not numbers:
        return function[0]
    body = re.sub(r"%(\d+)\b", lambda match: f"%local.{match[1]}" if match[1] in numbers else match[0], body)
    lines = "".join(match[0] for match in _RENAMED.finditer(body))
    return f"{head}{lines}{_RENAMED.sub('', body)}"


def _with_error_code(text: str, entry: str) -> str:
    """Return a module whose variable of the error is the last parameter of the kernel."""
    definition, *_ = re.findall(rf"^@{ERROR_CODE_GLOBAL_NAME} = .*\n", text, re.MULTILINE)
    text = text.replace(definition, "").replace(f"@{ERROR_CODE_GLOBAL_NAME}", "%error_code")
    return re.sub(rf"( @{re.escape(entry)}\()(.*)(\) )", _with_parameter, text, count=1)


def _with_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{', ' if match[2] else ''}ptr %error_code{match[3]}"
