"""Translation of a kernel for its argument types, with entries in the cache on disk that make Numba's compiler unnecessary."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import disk_cache
from ..llvmir.parameters import Parameter, UnusedPointer
from ..llvmir.translate import translate
from ..span import Span
from .compiling import compile_function
from .gpu_code import own_code
from .kernel import KernelFacts, NumbaKernel
from .keys import UNNAMED_FUNCTIONS, kernel_key
from .marks import POSITIONS
from .parameters import parameters_of

if TYPE_CHECKING:
    from ..ir import nodes as ir


@dataclass(frozen=True)
class RaisedException:
    """An exception of a kernel: its type and arguments, and function, file and line of the statement."""

    type: type[BaseException]
    arguments: tuple[Any, ...]
    place: tuple[str, str, int] | None


@dataclass(frozen=True)
class CompiledKernel:
    """A translated kernel. entry: the name of its LLVM function. raised: the exceptions of a kernel with debug=True, by the
    message of their finding. sensitive: whether Numba compiles it for one launch configuration."""

    facts: KernelFacts
    entry: str
    raised: dict[str, RaisedException]
    sensitive: bool


def compiled_kernel(
    function: Callable[..., Any], argument_types: Sequence[Any], options: dict[str, Any]
) -> tuple[CompiledKernel, NumbaKernel]:
    """Return a kernel from the cache on disk, or compile and translate it.

    options: of `compile_cuda`. Raises CompileError for a refused construct, LaunchError for a refused argument, Numba's errors.
    """

    def kernel(compiled: CompiledKernel, key: str | None, read: Callable[[], ir.Program]) -> NumbaKernel:
        return NumbaKernel(compiled.facts, key, read, own_code(function, argument_types, options, compiled.facts))

    key = None if UNNAMED_FUNCTIONS.exist else kernel_key(function, argument_types, options)
    compiled: CompiledKernel | None = None if key is None else disk_cache.load(f"{key}.numba", pickle.loads)
    if key is not None and compiled is not None:
        entry = f"{key}.program"

        def read() -> ir.Program:
            return disk_cache.load(entry, pickle.loads) or _translated(function, argument_types, options)[1]

        return compiled, kernel(compiled, key, read)
    compiled, program = _translated(function, argument_types, options)
    captures = any(view.parameter is None for view in compiled.facts.arrays.values())
    if key is None or UNNAMED_FUNCTIONS.exist or captures or compiled.sensitive:
        return compiled, kernel(compiled, None, lambda: program)
    disk_cache.save(f"{key}.program", pickle.dumps(program))
    disk_cache.save(f"{key}.numba", pickle.dumps(compiled))
    return compiled, kernel(compiled, key, lambda: program)


def _translated(
    function: Callable[..., Any], argument_types: Sequence[Any], options: dict[str, Any]
) -> tuple[CompiledKernel, ir.Program]:
    """Compile a kernel with Numba and translate its LLVM IR."""
    POSITIONS.codes.clear()
    compiled = compile_function(function, argument_types, **options)
    UNNAMED_FUNCTIONS.record(function, POSITIONS.codes)
    code = function.__code__
    parameters: list[Parameter] = [UnusedPointer()]
    for name, type in zip(code.co_varnames, argument_types, strict=False):
        parameters += parameters_of(name, type)
    raised = _exceptions(compiled.result) if options["debug"] else {}
    translation = translate(
        compiled.text,
        compiled.entry,
        parameters,
        name=function.__name__,
        span=Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1),
        spans=POSITIONS.spans,
        raised={number: message for number, (message, _) in raised.items()} or None,
    )
    facts = KernelFacts(
        function.__name__, parameters, translation.arrays, translation.scalars, compiled.result.library.use_cooperative
    )
    metadata = getattr(compiled.result, "metadata", None) or {}
    sensitive = bool(metadata.get("launch_config_sensitive", False))
    return CompiledKernel(facts, compiled.entry, dict(raised.values()), sensitive), translation.program


def _exceptions(result: Any) -> dict[int, tuple[str, RaisedException]]:
    """Return the exceptions of a kernel by the code that it returns, each with the message of its finding."""
    table = {}
    for number, (type, arguments, place) in result.call_helper.exceptions.items():
        text = ", ".join(map(str, arguments or ()))
        message = f"{type.__name__}: {text}" if text else type.__name__
        line = f", raised in line {place[2]}" if place else ""
        table[number] = (message + line, RaisedException(type, tuple(arguments or ()), place))
    return table
