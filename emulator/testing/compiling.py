"""Compilation of launched kernels with nvcc, and findings from its messages."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import Diagnostic, LaunchError, SimtbedError, UnavailableError
from ..machine.device import Device
from ..runtime.engine import Request

ALL = "all"
"""Every architecture of the compiler."""


def architecture(device: Device) -> str:
    """Return the compiler's name of a device, such as "sm_90"."""
    return "sm_{}{}".format(*device.compute_capability)


def architectures(names: str) -> tuple[str, ...]:
    """Return the architectures in a comma-separated text; `all` is every architecture of nvcc.

    Raises SimtbedError, one line, for an unknown architecture; UnavailableError if there is no nvcc.
    """
    nvcc = _cuda("nvcc")
    available: Sequence[str] = nvcc.architectures(nvcc.find_nvcc())
    if names == ALL:
        return tuple(available)
    requested = tuple(name.strip() for name in names.split(","))
    if unknown := [name for name in requested if name not in available]:
        raise SimtbedError(f"nvcc knows no architecture {unknown[0]!r}; it knows {', '.join(available)}, and all")
    return requested


def built_for(request: Request, arch: str) -> Any:
    """Return the compiled kernel of a launch: `nvcc.Built`.

    Raises UnavailableError if there is no nvcc, LaunchError if it rejects the kernel.
    """
    return _built(_cuda("printer").cuda_source(request.program, request.block, cluster=request.cluster), arch)


def _built(source: Any, arch: str) -> Any:
    return _cuda("nvcc").build(source.with_lines(), source.kernel, arch)


def _cuda(name: str) -> ModuleType:
    """Import a module of the cuda engine on demand."""
    return import_module(f"simtbed.engines.cuda.{name}")


@dataclass
class Compiling:
    """Compiles each printed kernel once for each architecture. compilations: their number."""

    architectures: tuple[str, ...]
    compilations: int = 0
    _results: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)

    def findings(self, requests: Iterable[Request]) -> list[Diagnostic]:
        """Return rejected kernels and register spills as findings. Raises UnavailableError if there is no nvcc."""
        sources: dict[str, tuple[Any, Request]] = {}
        for request in requests:
            source = _cuda("printer").cuda_source(request.program, request.block, cluster=request.cluster)
            sources.setdefault(source.text, (source, request))
        new = {text: source for text, source in sources.items() if text not in self._results}
        with ThreadPoolExecutor() as pool:
            pairs = [(source, request, arch) for source, request in new.values() for arch in self.architectures]
            messages = list(pool.map(lambda pair: tuple(_kernel_findings(*pair)), pairs))
        self.compilations += len(pairs)
        for number, text in enumerate(new):
            batch = messages[number * len(self.architectures) : (number + 1) * len(self.architectures)]
            self._results[text] = tuple(finding for found in batch for finding in found)
        return [finding for text in sources for finding in self._results[text]]


def _kernel_findings(source: Any, request: Request, arch: str) -> Iterator[Diagnostic]:
    """Yield the findings of a kernel on an architecture, at the line of its definition."""
    kernel = request.program.kernel
    try:
        resources = _built(source, arch).resources
    except UnavailableError:
        raise
    except LaunchError as error:
        refused = f"nvcc refuses {kernel.name} for {arch}"
        yield Diagnostic("compile", refused, kernel.span, tuple(str(error).splitlines()[1:MOST_LINES]))
        return
    if resources.spill_stores or resources.spill_loads:
        yield Diagnostic(
            "spill",
            f"{kernel.name} spills registers on {arch}: {resources.spill_stores} bytes stored, "
            f"{resources.spill_loads} bytes loaded",
            kernel.span,
            (f"{resources.registers} registers, blocks of {' x '.join(map(str, request.block))} threads",),
        )


MOST_LINES = 20
"""Maximum lines of a compiler's message."""
