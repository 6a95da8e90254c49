"""Inline assembly that kernels contain: PTX instructions by pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..ir import nodes as ir
from ..language.forms import AccessOrder
from ..language.types import BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar
from .accesses import Scope
from .arithmetic import SIGNED, bitcast, cast, operation, signed, unsigned
from .module import Assembly, Instruction
from .thread_calls import active_mask, lane_mask
from .types import OtherType, Type, UnsupportedError, memory_scalar, scalar_of
from .values import Item, truth

_TYPES: Mapping[str, Scalar] = MappingProxyType({
    "s8": I8, "s16": I16, "s32": I32, "s64": I64, "u8": U8, "u16": U16, "u32": U32, "u64": U64, "f16": F16, "f32": F32,
    "f64": F64, "b16": I16,
})  # fmt: skip
_CACHED = re.compile(r"(ld|st)\.global\.(?:ca|cg|cs|lu|cv|wb|wt)\.[bsuf](?:8|16|32|64) ")
_STEPS = {"rni": "rint", "rmi": "floor", "rpi": "ceil"}
_HALF_ROWS = {"add": "add", "sub": "sub", "mul": "mul", "fma.rn": "fma", "neg": "neg", "abs": "abs"}


def translate_assembly(scope: Scope, call: Instruction) -> Item | None:
    """Return the result of inline assembly. Raises UnsupportedError for a text without a pattern."""
    assembly = call.callee
    assert isinstance(assembly, Assembly)
    text = " ".join(assembly.text.strip("{}; \t\n").split())
    if (type := cached_type(call)) is not None:
        return _cached(scope, call, type)
    for pattern, handler in _PATTERNS.items():
        if match := re.match(pattern, text):
            values = [scope.values.expr(operand) for operand in call.operands]
            return handler(scope, call, match, values)
    raise UnsupportedError(f"the inline assembly {text!r} is not supported")


def cached_type(call: Instruction) -> Type | None:
    """Return the type of the value of a load or store with a cache hint, whose first operand is the address; None for other calls."""
    if not isinstance(call.callee, Assembly) or not (match := _CACHED.match(call.callee.text.strip())):
        return None
    return call.type if match[1] == "ld" else call.operands[1].type


def _cached(scope: Scope, call: Instruction, type: Type) -> Item | None:
    """An access with a cache hint, which has no other meaning; `cv` and `wt` are volatile."""
    assert isinstance(call.callee, Assembly)
    pointer = scope.values.pointer(call.operands[0])
    order: AccessOrder = "volatile" if re.search(r"\.(cv|wt)\.", call.callee.text) else "weak"
    if len(call.operands) > 1:
        scope.arrays.store(pointer, cast(scope.values.expr(call.operands[1]), memory_scalar(type)), order)
        return None
    loaded = scope.arrays.load(pointer, memory_scalar(type), order, call.name)
    return truth(loaded) if scalar_of(type) is BOOL else loaded


def _active(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    return active_mask(scope)


def _lane_mask(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    return lane_mask(scope, match[1])


def _sleep(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> None:
    scope.emitter.emit(ir.Sleep(unsigned(values[0]), scope.emitter.span))


def _dynamic_size(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    return scope.arrays.dynamic_bytes()


def _halves(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    """Arithmetic of halves, which assembly passes as halves or their bits."""
    result = operation(_HALF_ROWS[match[1]], *(bitcast(value, F16) for value in values))
    return bitcast(result, scalar_of(call.type))


def _conversion(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    rounding, target, source = match[1], _TYPES[match[2]], _TYPES[match[3]]
    value, result_type = values[0], scalar_of(call.type)
    value = bitcast(value, source) if source.is_float else cast(cast(value, SIGNED.get(source, source)), source)
    if target.is_float:
        if rounding not in (None, "rn"):
            raise UnsupportedError(f"the conversion {match[0]} is not supported: it does not round to the nearest")
        return bitcast(cast(value, target), result_type)
    if rounding in _STEPS and source.is_float:
        value = operation(_STEPS[rounding], cast(value, F32) if source is F16 else value)
    return cast(signed(cast(value, target)), result_type)


def _tanh(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item:
    """The approximation of the hardware has a relative error of 2**-11; this one is that of `tanh`."""
    return operation("tanh", values[0])


def _breakpoint(scope: Scope, call: Instruction, match: re.Match[str], values: list[ir.Expr]) -> Item | None:
    return None if call.type == OtherType("void") else scope.values.zero(call.type)


Pattern = Callable[[Scope, Instruction, "re.Match[str]", "list[ir.Expr]"], "Item | None"]
_PATTERNS: Mapping[str, Pattern] = MappingProxyType({
    r"activemask\.b32": _active,
    r"mov\.u32 \$0, %lanemask_(lt|le|eq|ge|gt)": _lane_mask,
    r"mov\.u32 \$0, %dynamic_smem_size": _dynamic_size,
    r"nanosleep\.u32": _sleep,
    r"(add|sub|mul|fma\.rn|neg|abs)\.f16 ": _halves,
    r"cvt\.(?:(r[nz]|rni|rzi|rmi|rpi)\.)?([suf]\d+)\.([suf]\d+)": _conversion,
    r"tanh\.approx\.f32 ": _tanh,
    r"brkpt": _breakpoint,
})  # fmt: skip
