"""The round trip of a launch: the kernel printed as CUDA C++, read back, and launched with the same arguments."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simtbed as st
from simtbed.cuda_cpp.kernel import CudaKernel, CudaSource
from simtbed.cuda_cpp.places import SourceText
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.language.types import Array
from simtbed.runtime.arrays import MappedArray
from simtbed.runtime.engine import Request
from simtbed.runtime.result import LaunchDetails, details_of

INSTRUCTIONS = ("warp_instructions", "thread_instructions", "branches")
"""Counters that depend on the code of the compiler."""
_READ: dict[str, CudaKernel] = {}


def read_back(request: Request) -> tuple[CudaKernel, Source]:
    """Return the printed kernel of a request, read as CUDA C++."""
    printed = cuda_source(request.program, request.block)
    text = printed.with_lines()
    if text not in _READ:
        _READ[text] = CudaSource(SourceText(text, "<printed>"))[printed.kernel]
    return _READ[text], printed


def arguments(kernel: CudaKernel, printed: Source, request: Request, empty: bool = False) -> dict[str, Any]:
    """Return the arguments of a request by the parameters of the printed kernel. empty: with arrays given as `empty` as such."""
    names = iter(kernel.parameters)
    kinds, tensors = dict[str, Any](), dict(printed.tensors)
    for own, parameter in zip(printed.arguments, names, strict=False):
        value: Any = request.arguments[own]
        if isinstance(value, np.ndarray):
            value = value.copy()
            if empty and own in request.unwritten:
                element = kernel.signature().parameters[parameter.name].type
                value = st.empty(value.shape[:1], str(element.element)) if isinstance(element, Array) else value
        kinds[parameter.name] = MappedArray(value, tensors[own]) if own in tensors else value
    for own, parameter in zip(printed.lengths, names, strict=True):
        carved = request.dynamic_arrays or {}
        length = len(request.arguments[own]) if own in request.arguments else carved[own].length  # type: ignore[arg-type]
        kinds[parameter.name] = np.int32(length)
    return kinds


@dataclass
class RoundTrips:
    """Launches a kernel and its printed text; collects the differences by kernel. bits: of outputs; counters: all but instructions."""

    launches: int = 0
    bits: dict[str, list[str]] = field(default_factory=dict)
    counters: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def launch(self, kernel: Any, **options: Any) -> st.Result:
        """Run a launch as `st.launch`, and its round trip. Return the result of the kernel itself."""
        result = st.launch(kernel, **options)
        details = details_of(result)
        name, request = kernel.__name__, details.request
        self.launches += 1
        try:
            other, printed = self.again(request, **options)
        except st.SimtbedError as error:
            self.refused[name] = str(error)
            return result
        names = dict(zip(printed.arguments, (p.name for p in _READ[printed.with_lines()].parameters), strict=False))
        different = [own for own, a, b in _outputs(details, other, names) if a != b]
        if different:
            self.bits[name] = different
        if details.counts is not None:
            a, b = details.counters.totals(), other.counters.totals()
            wrong = {n: (a[n], b[n]) for n in a if a[n] != b[n] and not n.startswith(INSTRUCTIONS)}
            if wrong:
                self.counters[name] = wrong
        return result

    def again(self, request: Request, **options: Any) -> tuple[LaunchDetails, Source]:
        """Launch the printed text of a request."""
        kernel, printed = read_back(request)
        remaining = {name: options[name] for name in ("check", "engine", "counters", "faults") if name in options}
        shared = request.dynamic_shared + printed.carved_bytes
        how: dict[str, Any] = {
            "grid": request.grid, "block": request.block, "cluster": request.cluster, "device": request.device,
        }  # fmt: skip
        values = arguments(kernel, printed, request)
        result = st.launch(kernel, args=values, shared=shared, cooperative=request.cooperative, **how, **remaining)
        return details_of(result), printed


def _outputs(result: LaunchDetails, other: LaunchDetails, names: dict[str, str]) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the bytes of each array that the kernel may change, of both launches."""
    request = result.request
    for own in request.specialisation.summary.changed:
        owner, path = request.owners.get(own, (own, ()))
        mine = result.buffers[owner]
        for key in path:
            mine = mine[key]
        theirs = request.forms[own].shaped(other.buffers[names[own]])
        yield own, np.ascontiguousarray(mine).tobytes(), np.ascontiguousarray(theirs).tobytes()
