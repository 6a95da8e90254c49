"""Integers of other widths than those of registers, as LLVM's combination of bit operations has them: registers whose high bits are 0."""

from ..ir import nodes as ir
from ..language.types import BOOL, I32, I64, Scalar
from .accesses import Scope, regrouped
from .arithmetic import cast, compared, constant, operation, signed, unsigned
from .module import Instruction, Number, Operand
from .types import IntType, SequenceType, Type, UnsupportedError, scalar_of
from .values import Item

_REGISTERS = (1, 8, 16, 32, 64)

_OPERATIONS = {**{name: name for name in ("and", "or", "xor", "add", "sub", "mul", "shl")}, "lshr": "shr"}


def is_narrow(instruction: Instruction) -> bool:
    """Return whether an instruction has an operand or a result of such a type."""
    return any(isinstance(t, IntType) and t.bits not in _REGISTERS for t in (instruction.type, *_types(instruction)))


def _types(instruction: Instruction) -> list[Type]:
    return [operand.type for operand in instruction.operands]


def _register(type: Type) -> Scalar:
    assert isinstance(type, IntType)
    return I32 if type.bits < 32 else I64


def _read(scope: Scope, operand: Operand) -> ir.Expr:
    if isinstance(operand, Number):
        assert isinstance(operand.type, IntType)
        return constant(int(operand.value) & (1 << operand.type.bits) - 1, _register(operand.type), scope.emitter.span)
    return scope.values.expr(operand)


def translate_narrow(scope: Scope, instruction: Instruction) -> Item:
    """Return the value of an instruction. Raises UnsupportedError for a division or a shift with a sign."""
    name, type, span = instruction.function or instruction.op, instruction.type, scope.emitter.span
    if name in ("trunc", "zext") and isinstance(type, IntType) and type.bits > 1:
        value, is_register = _read(scope, instruction.operands[0]), type.bits in _REGISTERS
        value = cast(unsigned(value) if name == "zext" else value, scalar_of(type) if is_register else _register(type))
        return value if is_register else _masked(value, type)
    if name in _OPERATIONS:
        return _masked(operation(_OPERATIONS[name], *(_read(scope, own) for own in instruction.operands)), type)
    if name in ("icmp", "sext", "bitcast"):
        return _compared(scope, instruction) if name == "icmp" else _converted(scope, instruction)
    if name.startswith("llvm.bitreverse.") and isinstance(type, IntType):
        register = _register(type)
        high = operation("brev", unsigned(_read(scope, instruction.operands[0])))
        return signed(operation("shr", high, constant(register.bits - type.bits, I32, span)))
    raise UnsupportedError(f"the instruction {name} on integers of other bits than 8, 16, 32 and 64 is not supported")


def _signed(scope: Scope, operand: Operand) -> ir.Expr:
    """Return the number of an operand with its sign."""
    assert isinstance(operand.type, IntType)
    register = _register(operand.type)
    above = constant(register.bits - operand.type.bits, I32, scope.emitter.span)
    return operation("shr", operation("shl", _read(scope, operand), above), above)


def _compared(scope: Scope, instruction: Instruction) -> ir.Expr:
    read = _signed if instruction.word.startswith("s") else _read
    return compared(instruction.word, *(read(scope, operand) for operand in instruction.operands))


def _converted(scope: Scope, instruction: Instruction) -> Item:
    """Return an extended number, or the bits of a vector of truth values as a number and back."""
    (operand,), type = instruction.operands, instruction.type
    if instruction.op == "sext" and isinstance(type, IntType) and type.bits in _REGISTERS:
        return cast(_signed(scope, operand), scalar_of(type))
    if isinstance(type, SequenceType) and scalar_of(type.item) is BOOL:
        return regrouped([scope.emitter.let(_read(scope, operand), "bits")], BOOL)[: type.count]
    lanes = scope.values.resolve(operand)
    if isinstance(lanes, list) and isinstance(type, IntType) and all(lane.type is BOOL for lane in lanes):
        return regrouped(lanes, _register(type))[0]
    raise UnsupportedError(f"the instruction {instruction.op} from {operand.type} to {type} is not supported")


def _masked(value: ir.Expr, type: Type) -> ir.Expr:
    assert isinstance(type, IntType)
    return operation("and", value, constant((1 << type.bits) - 1, _register(type), value.span))
