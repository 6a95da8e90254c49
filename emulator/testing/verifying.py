"""Comparison of a kernel with an oracle and between engines, with the checkers and in other orders of execution."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checked import shown
from ..errors import Diagnostic, LaunchError, SimtbedError, render
from ..runtime.arrays import DeviceArray, NewArray
from ..runtime.engine import Request
from ..runtime.launching import launch
from ..runtime.registry import EngineName, engine_named, row_of
from ..runtime.request import named_arguments
from ..runtime.result import LaunchDetails, Result, details_of
from ..runtime.specialisation import AnyKernel
from ..runtime.tolerance import Tolerance
from ..tracebacks import without_own_frames
from .comparing import Answer, Comparison, disagreement, order_remarks
from .filling import find_unwritten, quiet
from .native_maths import native_findings, own_code_findings

ORDERS = 2
"""Further orders of blocks and warps of a checked launch."""


class Disagreement(AssertionError):
    """Two engines, or an engine and the oracle, have different results: the first element, and the statement that wrote it;
    or an array given as `empty` has elements that no thread wrote."""

    for_the_user = True


@without_own_frames
def verify(  # noqa: PLR0913 - the public signature: keywords only
    kernel: AnyKernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    oracle: Callable[..., Any] | None = None,
    engines: Sequence[EngineName] = ("jit", "numpy"),
    rtol: float = 0.0,
    atol: float = 0.0,
    ulp: int = 0,
    any_order: Sequence[str] = (),
    checked: bool = False,
    **how: Any,
) -> Result:
    """Launch a kernel on each engine; compare its results with those of the first engine and with an oracle.

    oracle: a function of arguments of the kernel, by name, with the arrays as before the launch. It
    returns the expected results: a mapping from names to arrays, or the array if the kernel writes one.
    Engines must agree to the bit, and so must the oracle, unless a tolerance is given: floats within
    `atol + rtol * |expected|`, or within `ulp` units in the last place; a tolerance applies between engines too.
    any_order: arrays compared as multisets of their elements. On a GPU an array that depends on the order of threads
    (old values of atomics, compare-and-swap, sums of floats) may differ: the result has a remark. A GPU runs the kernel
    with CUDA's own mathematical functions too: the result has a remark with the largest difference. A Disagreement is a
    result without the bits of the kernel's executed SASS; where that is not emulated, a difference beyond its bound.
    Every element of an array given as `empty` must be written: give `zeros` for a partial output.
    checked: emulators run all checkers, and the first one other orders of blocks and warps too. how: as in `launch`.

    Returns the result of the first engine. Raises Disagreement, an AssertionError, with the first element that differs,
    its block and thread and the statement that wrote it, or with the number of unwritten elements; FaultError; and the
    errors of `launch`.
    """
    __tracebackhide__ = True
    if not engines:
        raise LaunchError("verify needs at least one engine")
    kernel, args = named_arguments(kernel, args)
    if arguments := [name for name, value in args.items() if isinstance(value, DeviceArray)]:
        raise LaunchError(f"verify launches several times: give arrays, not a DeviceArray, for {', '.join(arguments)}")
    if isinstance(any_order, str):
        raise LaunchError(f"any_order is a list of arrays: any_order=[{shown(any_order)}]")
    comparison = Comparison(Tolerance(rtol, atol, ulp), tuple(any_order))
    shape: dict[str, Any] = {"grid": grid, "block": block, "args": args, **how}
    results = {engine: _launched(kernel, engine, checked, engine == engines[0], shape) for engine in engines}
    first, *rest = engines
    result = results[first]
    if unknown := [name for name in comparison.any_order if name not in result.buffers]:
        raise LaunchError(
            f"any_order: the kernel does not write {shown(unknown[0])}; it writes {', '.join(result.buffers)}"
        )
    if not result.faults and (unwritten := find_unwritten(result.request, result.buffers, first)):
        raise Disagreement("\n".join(map(render, unwritten)))
    if oracle is not None:
        _agree(
            result.request,
            result.buffers,
            _expected(oracle, {**kernel.defaults, **args}, result),
            (first, "the oracle"),
            comparison,
        )
    for engine in rest:
        actual, names = results[engine].buffers, (engine, first)
        remarks: list[Diagnostic] = []
        if not (row_of(engine).emulates and row_of(first).emulates):
            remarks = _gpu_findings(result.request, actual, result.buffers, names, comparison)
            _raise_disagreement(remarks)
        compared = {name: values for name, values in result.buffers.items() if name not in _arrays(remarks)}
        _agree(result.request, actual, compared, names, comparison)
        result.remarks += remarks
    for engine in engines:
        if not row_of(engine).emulates:
            _add_native_findings(result, results[engine].buffers, engine)
    return Result(result)


def _add_native_findings(result: LaunchDetails, actual: Answer, engine: EngineName) -> None:
    __tracebackhide__ = True
    findings = native_findings(quiet(result.request), actual, engine)
    _raise_disagreement(findings)
    result.remarks += findings


def _raise_disagreement(findings: Sequence[Diagnostic]) -> None:
    __tracebackhide__ = True
    for finding in findings:
        if finding.kind == "disagreement":
            raise Disagreement(render(finding))


def _gpu_findings(
    request: Request, actual: Answer, expected: Answer, names: tuple[EngineName, EngineName], comparison: Comparison
) -> list[Diagnostic]:
    """Return a finding for each array that differs and is not compared to the bit: it depends on the order of threads, or a
    kernel's own code computed it with CUDA's functions. With a tolerance there is none: it states the comparison."""
    if comparison.tolerance != Tolerance():
        return []
    remarks = order_remarks(request, actual, expected, names, comparison)
    if row_of(names[0]).emulates:
        return remarks + own_code_findings(request, expected, actual, names[1])
    return remarks + own_code_findings(request, actual, expected, names[0])


def _launched(
    kernel: AnyKernel, engine: EngineName, checked: bool, orders: bool, shape: dict[str, Any]
) -> LaunchDetails:
    """Launch on one engine; for a checked launch on an emulator, with the checkers, and in other orders if requested."""
    if not (checked and row_of(engine).complete):
        return details_of(launch(kernel, engine=engine, **shape))
    result = details_of(launch(kernel, engine=engine, **{"check": "all", **shape}))
    if orders and "schedule" not in shape:
        launch(kernel, engine=engine, **{"schedules": ORDERS, **shape})
    return result


def _expected(oracle: Callable[..., Any], args: Mapping[str, Any], result: LaunchDetails) -> Answer:
    """Return the results of the oracle as arrays of the types and shapes that the kernel wrote."""
    arguments = {name: value.initial() if isinstance(value, NewArray) else _own(value) for name, value in args.items()}
    parameters = inspect.signature(oracle).parameters.values()
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        arguments = {one.name: arguments[one.name] for one in parameters if one.name in arguments}
    answer = oracle(**arguments)
    if not isinstance(answer, Mapping):
        if len(result.buffers) != 1:
            raise SimtbedError(
                f"the kernel writes {', '.join(result.buffers)}: the oracle returns a mapping from names to arrays"
            )
        answer = dict.fromkeys(result.buffers, answer)
    if unknown := [name for name in answer if name not in result.buffers]:
        raise SimtbedError(f"the kernel does not write {', '.join(unknown)}; it writes {', '.join(result.buffers)}")
    return {name: _like(name, np.asarray(values), result.buffers[name]) for name, values in answer.items()}


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _like(name: str, values: npt.NDArray[Any], written: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.size != written.size:
        raise SimtbedError(f"{name} has the shape {written.shape}, the oracle's answer {values.shape}")
    return np.ascontiguousarray(values, written.dtype).reshape(written.shape)


def _agree(request: Request, actual: Answer, expected: Answer, names: tuple[str, str], comparison: Comparison) -> None:
    __tracebackhide__ = True
    wrong = disagreement(request, {name: actual[name] for name in expected}, expected, names, comparison)
    if wrong is not None:
        raise Disagreement(render(wrong))


def compare_engines(
    request: Request, actual: Answer, engines: Sequence[EngineName], comparison: Comparison
) -> list[Diagnostic]:
    """Return a diagnostic for each engine whose results differ from those of the jit engine, and remarks (`order_remarks`)."""
    request = quiet(request)
    findings: list[Diagnostic] = []
    for engine in engines:
        answer = request.shaped(engine_named(engine).run(request).buffers)
        names: tuple[EngineName, EngineName] = (engine, "jit")
        remarks = [] if row_of(engine).emulates else _gpu_findings(request, answer, actual, names, comparison)
        compared = {name: values for name, values in answer.items() if name not in _arrays(remarks)}
        wrong = disagreement(request, compared, actual, names, comparison)
        findings += remarks if wrong is None else [wrong, *remarks]
        if not row_of(engine).emulates:
            findings += native_findings(request, answer, engine)
    return findings


def _arrays(remarks: Sequence[Diagnostic]) -> set[str]:
    """Return the arrays that remarks are about."""
    return {remark.array for remark in remarks}
