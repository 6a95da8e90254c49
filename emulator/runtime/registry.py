"""Engine registry: name, module and capabilities."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from ..checked import shown, within_stack
from ..errors import LaunchError
from ..profiler.events import Counts
from ..profiler.launch_memory import LaunchMemory
from .engine import Engine, Request

EngineName = Literal["jit", "numpy", "python", "cuda"]


@dataclass(frozen=True)
class EngineRow:
    """One engine. module, factory: imported at first use.

    emulates: whether it checks. complete: whether it counts, and has every check. host_calls: whether kernels may call Python functions.
    queues: whether launches on streams are queued (`StreamEngine`).
    """

    name: str
    module: str
    factory: str
    emulates: bool
    complete: bool = False
    host_calls: bool = False
    queues: bool = False


ENGINES = {
    row.name: row
    for row in (
        EngineRow("jit", "simtbed.engines.llvm.engine", "LlvmEngine", emulates=True, complete=True),
        EngineRow("numpy", "simtbed.engines.numpy.engine", "NumpyEngine", emulates=True, complete=True),
        EngineRow("python", "simtbed.engines.python.engine", "PythonEngine", emulates=True, host_calls=True),
        EngineRow("cuda", "simtbed.engines.cuda.engine", "CudaEngine", emulates=False, queues=True),
    )
}


def row_of(name: str) -> EngineRow:
    """Return the row of an engine. Raises LaunchError with the valid names."""
    if not isinstance(name, str) or name not in ENGINES:
        *most, last = ENGINES
        raise LaunchError(
            f"no engine is called {name if isinstance(name, str) else shown(name)}; there are {', '.join(most)} and {last}"
        )
    return ENGINES[name]


def engine_named(name: str) -> Engine:
    """Return the engine of a name, created once. Raises LaunchError with the valid names."""
    return _create(row_of(name).name)


@cache
def _create(name: str) -> Engine:
    row = ENGINES[name]
    engine: Engine = getattr(import_module(row.module), row.factory)()
    return engine


def compiled_view(request: Request, counts: Counts, memory: LaunchMemory) -> Any:
    """Return the compiled kernel of a request (`compiled.kernel.CompiledKernel`), for the request's device."""
    kernel = import_module("simtbed.compiled.kernel")
    launched = import_module("simtbed.compiled.kernel_launches").launches_by_kernel([(request, counts, memory)])
    return kernel.compiled_kernel(*launched, "sm_{}{}".format(*request.device.compute_capability))


@within_stack()
def cuda_text(request: Request) -> str:
    """Return the kernel of a request as CUDA C++."""
    printer = import_module("simtbed.engines.cuda.printer")
    return str(printer.cuda_source(request.program, request.block, cluster=request.cluster).text)
