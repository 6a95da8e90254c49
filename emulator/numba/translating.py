"""Translation of a kernel of Numba-CUDA for its argument types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..llvmir.parameters import Parameter, UnusedPointer
from ..llvmir.translate import translate
from ..span import Span
from .compiling import compile_function, observed_warnings
from .gpu_code import own_code
from .kernel import KernelFacts, NumbaKernel
from .keys import UnnamedFunctions, kernel_key
from .marks import POSITIONS
from .packages import NUMBA_CUDA
from .parameters import parameters_of
from .stored_kernels import CompiledKernel, new_kernel, stored_kernel

if TYPE_CHECKING:
    from ..ir import nodes as ir


UNNAMED_FUNCTIONS = UnnamedFunctions(NUMBA_CUDA)


def compiled_kernel(
    function: Callable[..., Any], argument_types: Sequence[Any], options: dict[str, Any]
) -> tuple[CompiledKernel, NumbaKernel]:
    """Return a kernel from the cache on disk, or compile and translate it.

    options: of `compile_cuda`. Raises CompileError for a refused construct, LaunchError for a refused argument, Numba's errors.
    """
    key = None if UNNAMED_FUNCTIONS.exist else kernel_key(NUMBA_CUDA, function, argument_types, options)
    own = partial(own_code, function, argument_types, options)
    stored = stored_kernel(key, lambda: _translated(function, argument_types, options)[1], own)
    if stored is not None:
        return stored
    with observed_warnings() as numbas:
        compiled, program = _translated(function, argument_types, options)
    # Each process shows the warnings of a kernel.
    return compiled, new_kernel(compiled, program, None if UNNAMED_FUNCTIONS.exist or numbas else key, own)


def _translated(
    function: Callable[..., Any], argument_types: Sequence[Any], options: dict[str, Any]
) -> tuple[CompiledKernel, ir.Program]:
    """Compile a kernel with Numba and translate its LLVM IR."""
    with UNNAMED_FUNCTIONS.recorded(function):
        compiled = compile_function(function, argument_types, **options)
    code = function.__code__
    parameters: list[Parameter] = [UnusedPointer()]
    for name, type in zip(code.co_varnames, argument_types, strict=False):
        parameters += parameters_of(name, type)
    span = Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
    raised = {number: replace(own, span=own.span or span) for number, own in compiled.raised.items()}
    findings = {number: (own.message, own.span or span) for number, own in raised.items()}
    translation = translate(
        compiled.text,
        compiled.entry,
        parameters,
        name=function.__name__,
        span=span,
        span_of=lambda position: POSITIONS.spans.get(position.line),
        raised=findings if options["debug"] else {},
    )
    facts = KernelFacts(
        function.__name__, parameters, translation.arrays, translation.scalars, compiled.result.library.use_cooperative
    )
    metadata = getattr(compiled.result, "metadata", None) or {}
    sensitive = bool(metadata.get("launch_config_sensitive", False))
    exceptions = {findings[number]: own for number, own in raised.items()}
    return CompiledKernel(facts, compiled.entry, exceptions, sensitive), translation.program
