"""Comparison of CUDA's own mathematical functions with portable ones: the largest difference of each array, and its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import Diagnostic
from ..ir.effects import written_array
from ..ir.op import BITS, Policy, ulp_distance
from ..ir.walk import statements
from ..language.types import holds_floats
from ..runtime.engine import Request
from ..runtime.registry import EngineName, engine_named
from .comparing import Answer, Values


def native_findings(request: Request, portable: Answer, engine: EngineName) -> list[Diagnostic]:
    """Launch with CUDA's own functions on a GPU. Return a remark for each array that differs; a disagreement beyond the bound.

    portable: the arrays of the launch with portable mathematics. A finding is at the first statement that writes the array.
    Arrays that depend on the order of threads are not compared.
    """
    if request.maths == "native" or request.specialisation.own_code is not None or not _rounded(request, portable):
        return []
    return _findings(
        request, request.shaped(engine_named(engine).run(replace(request, maths="native")).buffers), portable
    )


def own_code_findings(request: Request, actual: Answer, expected: Answer) -> list[Diagnostic]:
    """Return such findings for the answer of a kernel's own code, which calls CUDA's functions; none for a printed kernel."""
    return [] if request.specialisation.own_code is None else _findings(request, actual, expected)


def _rounded(request: Request, answer: Answer) -> list[str]:
    """Return the arrays that contain results of functions and do not depend on the order of threads."""
    prepared = request.prepared
    return [name for name in answer if name in prepared.rounded and name not in prepared.order_dependent]


def _findings(request: Request, native: Answer, portable: Answer) -> list[Diagnostic]:
    rounded = request.prepared.rounded
    findings = (
        _finding(request, name, native[name], portable[name], rounded[name].bound)
        for name in _rounded(request, portable)
    )
    return [finding for finding in findings if finding is not None]


def _finding(request: Request, array: str, native: Values, portable: Values, bound: Policy | None) -> Diagnostic | None:
    if native.dtype.kind == "c":
        native, portable = native.view(native.real.dtype), portable.view(portable.real.dtype)
    unequal = ~BITS.agree(native, portable)
    count = int(unequal.sum())
    if not count:
        return None
    message = f"{array}: {count:,} of {native.size:,} elements differ between native and portable mathematics"
    if holds_floats(native.dtype):
        a, b = native[unequal], portable[unequal]
        with np.errstate(invalid="ignore"):  # a signalling NaN
            numbers = ~(np.isnan(a) | np.isnan(b))
        message += f", by at most {int(ulp_distance(a, b)[numbers].max(initial=0)):,} ulp"
    body = request.prepared.program.kernel.body
    span = next(stmt.span for stmt in statements(body) if written_array(stmt) == array)
    if bound is None:
        advice = "operations follow the functions: there is no bound"
        return Diagnostic("native", message, span, (advice,), count, array=array)
    beyond = int((~bound.agree(native, portable)).sum())
    stated = f"the bound is {_text(bound)}"
    if beyond:
        advice = f"{stated}; elements beyond it: {beyond:,}"
        return Diagnostic("disagreement", message, span, (advice,), count, array=array)
    return Diagnostic("native", message, span, (stated,), count, array=array)


def _text(bound: Policy) -> str:
    return f"{bound.ulp} ulp" + (f" or {bound.absolute:.3g}" if bound.absolute else "")
