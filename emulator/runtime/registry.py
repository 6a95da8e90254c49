"""The engines by name: what each can do, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from ..checked import shown, within_stack
from ..errors import LaunchError
from ..profiler.decisions import Decisions
from ..profiler.events import Counts
from .engine import Engine, Request

EngineName = Literal["jit", "numpy", "cuda"]


@dataclass(frozen=True)
class Row:
    """One engine. module, factory: what makes it; imported when it is first asked for.

    emulates: whether it counts and checks.
    """

    name: str
    module: str
    factory: str
    emulates: bool


ENGINES = {
    row.name: row
    for row in (
        Row("jit", "simtbed.engines.llvm.engine", "LlvmEngine", emulates=True),
        Row("numpy", "simtbed.engines.numpy.engine", "NumpyEngine", emulates=True),
        Row("cuda", "simtbed.engines.cuda.engine", "CudaEngine", emulates=False),
    )
}


def row_of(name: str) -> Row:
    """Raises LaunchError with the names there are."""
    if not isinstance(name, str) or name not in ENGINES:
        *most, last = ENGINES
        raise LaunchError(
            f"no engine is called {name if isinstance(name, str) else shown(name)}; there are {', '.join(most)} and {last}"
        )
    return ENGINES[name]


def engine_called(name: str) -> Engine:
    """The engine of that name, made once. Raises LaunchError with the names there are."""
    return _made(row_of(name).name)


@cache
def _made(name: str) -> Engine:
    row = ENGINES[name]
    made: Engine = getattr(import_module(row.module), row.factory)()
    return made


def compiled_view(request: Request, counts: Counts, decisions: Decisions) -> Any:
    """The compiled kernel of a request (`compiled.kernel.CompiledKernel`), for the request's device."""
    kernel = import_module("simtbed.compiled.kernel")
    launched = import_module("simtbed.compiled.kernel_launches").printed_kernels([(request, counts, decisions)])
    return kernel.compiled_kernel(*launched, "sm_{}{}".format(*request.device.compute_capability))


@within_stack()
def cuda_text(request: Request) -> str:
    """The kernel of a request as CUDA C++."""
    printer = import_module("simtbed.engines.cuda.printer")
    return str(printer.cuda_source(request.program, request.block).text)
