"""Comparison of CUDA's own mathematical functions with portable ones, and with the executed SASS of the kernel.

The SASS contains the functions, so its execution gives the bits of the GPU. Where it is not emulated, the differences from the
portable functions have bounds.
"""

from dataclasses import replace

import numpy as np

from ..compiled.answer import executed_arrays
from ..errors import Diagnostic
from ..ir.effects import written_array
from ..ir.op import BITS, Policy, ulp_distance
from ..ir.walk import statements
from ..language.types import holds_floats
from ..runtime.engine import GpuEngine, Request
from ..runtime.registry import EngineName, engine_named
from .comparing import Answer, Values


def native_findings(request: Request, portable: Answer, engine: EngineName) -> list[Diagnostic]:
    """Launch with CUDA's own functions on a GPU. Return a remark for each array that differs; a disagreement if its bits are
    not those of the executed SASS, or beyond the bound.

    portable: the arrays of the launch with portable mathematics. A finding is at the first statement that writes the array.
    Arrays that depend on the order of threads are not compared.
    """
    if request.maths == "native" or request.specialisation.own_code is not None or not _rounded(request, portable):
        return []
    request = replace(request, maths="native")
    return _findings(request, request.shaped(engine_named(engine).run(request).buffers), portable, engine)


def own_code_findings(request: Request, native: Answer, portable: Answer, engine: EngineName) -> list[Diagnostic]:
    """Return such findings for the answer of a kernel's own code, which calls CUDA's functions; none for a printed kernel."""
    return [] if request.specialisation.own_code is None else _findings(request, native, portable, engine)


def _rounded(request: Request, answer: Answer) -> list[str]:
    """Return the arrays that contain results of functions and do not depend on the order of threads."""
    prepared = request.prepared
    return [name for name in answer if name in prepared.rounded and name not in prepared.order_dependent]


def _findings(request: Request, native: Answer, portable: Answer, engine: EngineName) -> list[Diagnostic]:
    names = [n for n in _rounded(request, portable) if not BITS.agree(*_reals(native[n], portable[n])).all()]
    gpu = engine_named(engine)
    arrays = executed_arrays(request, gpu.architecture()) if names and isinstance(gpu, GpuEngine) else None
    executed = None if arrays is None else request.shaped(arrays)
    return [_finding(request, name, native[name], portable[name], executed) for name in names]


def _finding(request: Request, array: str, native: Values, portable: Values, executed: Answer | None) -> Diagnostic:
    """Return the finding of an array that differs from the portable one."""
    count, message = _difference(native, portable, "native and portable mathematics")
    body = request.prepared.program.kernel.body
    span = next(stmt.span for stmt in statements(body) if written_array(stmt) == array)
    if executed is not None:
        wrong, text = _difference(native, executed[array], "the GPU and the executed SASS of the kernel")
        if wrong:
            return Diagnostic("disagreement", f"{array}: {text}", span, (), wrong, array=array)
        notes = ("the executed SASS of the kernel has the same bits",)
        return Diagnostic("native", f"{array}: {message}", span, notes, count, array=array)
    bound = request.prepared.rounded[array].bound
    if bound is None:
        advice = "operations follow the functions: there is no bound"
        return Diagnostic("native", f"{array}: {message}", span, (advice,), count, array=array)
    beyond = int((~bound.agree(*_reals(native, portable))).sum())
    stated = f"the bound is {_text(bound)}"
    if beyond:
        advice = f"{stated}; elements beyond it: {beyond:,}"
        return Diagnostic("disagreement", f"{array}: {message}", span, (advice,), count, array=array)
    return Diagnostic("native", f"{array}: {message}", span, (stated,), count, array=array)


def _reals(a: Values, b: Values) -> tuple[Values, Values]:
    """Return two arrays of equal type, those of complex numbers as their components."""
    if a.dtype.kind != "c":
        return a, b
    return a.view(a.real.dtype), b.view(b.real.dtype)


def _difference(native: Values, other: Values, names: str) -> tuple[int, str]:
    """Return the number of elements that differ, and a description. names: of the two."""
    native, other = _reals(native, other)
    unequal = ~BITS.agree(native, other)
    count = int(unequal.sum())
    message = f"{count:,} of {native.size:,} elements differ between {names}"
    if holds_floats(native.dtype):
        a, b = native[unequal], other[unequal]
        with np.errstate(invalid="ignore"):  # a signalling NaN
            numbers = ~(np.isnan(a) | np.isnan(b))
        message += f", by at most {int(ulp_distance(a, b)[numbers].max(initial=0)):,} ulp"
    return count, message


def _text(bound: Policy) -> str:
    return f"{bound.ulp} ulp" + (f" or {bound.absolute:.3g}" if bound.absolute else "")
