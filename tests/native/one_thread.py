"""A native function on an emulator, as a kernel of one thread with every check: what it must agree with."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.ir import nodes as ir
from simtbed.ir.ops import BITS, Policy
from simtbed.ir.spec import verify
from simtbed.language.types import I32, Array, Scalar
from simtbed.machine.device import H200
from simtbed.native import Native
from simtbed.native.lowering import native_program
from simtbed.runtime.engine import Request
from simtbed.runtime.specialisation import Specialisation
from simtbed.sanitizer.checkers import BY_NAME

RESULT = "result@"
ENGINES = {"numpy": NumpyEngine, "jit": LlvmEngine}


def as_kernel(function: Native, *consts: Any) -> ir.Program:
    """A kernel that calls the function and stores its result, if it has one."""
    names = function.function.__code__.co_varnames
    named = {names[n]: value for n, value in zip(sorted(function._const_positions), consts, strict=True)}
    actual = native_program(function, named)
    own, span = actual.kernel, actual.kernel.span
    args = tuple(
        ir.ArrayRef(p.name, span) if isinstance(p.type, Array) else ir.Reg(p.name, p.type, span) for p in own.params
    )
    call = ir.Call(own.name, args, own.result, span)
    params = own.params
    body: list[ir.Stmt] = [ir.Let(None, call, span)]
    if isinstance(own.result, Scalar):
        result = ir.Reg("found@", own.result, span)
        stored = ir.Store(RESULT, ir.Const(0, I32, span), result, span)
        params, body = (*params, ir.Param(RESULT, Array(own.result, None, "global"), span)), [
            ir.Let(result, call, span), stored,
        ]  # fmt: skip
    created = ir.Program(ir.Function("one_thread", params, tuple(body), None, span), (*actual.functions, own))
    verify(created)
    return created


def emulated(function: Native, *arguments: Any, engine: str = "jit") -> tuple[Any, list[Any]]:
    """Return the result and the final arrays of a run on an emulator without faults. arguments: of the native call."""
    places = function._const_positions
    created = as_kernel(function, *(v for n, v in enumerate(arguments) if n in places))
    rest = leaves(v for n, v in enumerate(arguments) if n not in places)
    kernel_arguments: dict[str, Any] = {}
    for param, value in zip(created.kernel.params, rest, strict=False):
        array = isinstance(param.type, Array)
        kernel_arguments[param.name] = value.copy() if array else param.type.dtype.type(value)  # type: ignore[union-attr]
    last = created.kernel.params[-1]
    if last.name == RESULT:
        kernel_arguments[RESULT] = np.zeros(1, last.type.element.dtype)  # type: ignore[union-attr]
    request = Request(
        Specialisation.of_program(created), (1, 1, 1), (1, 1, 1), kernel_arguments, 0, H200, False, 1 << 40, checks=frozenset(BY_NAME),
        filled={RESULT: kernel_arguments[RESULT][0]} if RESULT in kernel_arguments else {},
    )  # fmt: skip
    outcome = ENGINES[engine]().run(request)
    assert outcome.faults == []
    after = {**kernel_arguments, **outcome.buffers}
    result = after[RESULT][0] if RESULT in after else None
    return result, [after[p.name] for p in created.kernel.params if isinstance(p.type, Array) and p.name != RESULT]


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def leaves(arguments: Iterable[Any]) -> list[Any]:
    """Return the arguments with named tuples replaced by their fields."""
    return [leaf for value in arguments for leaf in (value if isinstance(value, tuple) else (value,))]


def assert_native_agrees(function: Native, *arguments: Any, engine: str = "jit", policy: Policy = BITS) -> Any:
    """Assert that result and arrays of a native call equal those of the emulator; return the result."""
    expected, arrays = emulated(function, *arguments, engine=engine)
    own = [_copied(value) for value in arguments]
    result = function(*own)
    if expected is not None:
        assert policy.agree(np.array([result]).astype(expected.dtype), np.array([expected])).all()
    for mine, other in zip((v for v in leaves(own) if isinstance(v, np.ndarray)), arrays, strict=True):
        assert policy.agree(mine, other).all()
    return result
