"""Calls of inline assembly and of intrinsics of PTX instructions: operands, results, predicates."""

from collections.abc import Iterator

from ..ir import nodes as ir
from ..language.types import BOOL, I64, Scalar, Vector
from . import ptx_conversions, ptx_matrices, ptx_mbarriers, ptx_warpgroups, ptx_wmma  # noqa: F401
from .accesses import Scope, regrouped
from .arithmetic import constant, operation
from .arrays import Need
from .assembly import Registers, Statement, as_type, statements
from .module import Assembly, Instruction, Operand
from .pointers import Pointer
from .ptx_intrinsics import intrinsic_statement
from .ptx_memory import accessed
from .ptx_table import execute
from .types import VOID, IntType, PointerType, SequenceType, StructType, Type, memory_scalar, scalar_of, size_of
from .values import Item


def assembly_accesses(call: Instruction) -> Iterator[tuple[Operand, Scalar, Need]]:
    """Yield the operands that an assembly text may access as addresses, each with the type of the elements and the need."""
    for statement in instructions_of(call) or ():
        modules = ptx_matrices, ptx_warpgroups, ptx_wmma
        matrices = [type for module in modules for type in module.accessed(statement.name)]
        for type, need in (
            *accessed(statement),
            *ptx_mbarriers.accessed(statement.name),
            *((type, "any") for type in matrices),
        ):
            lane = type.element if isinstance(type, Vector) else type
            yield from ((operand, lane, need) for operand in call.operands)


def instructions_of(call: Instruction) -> tuple[Statement, ...] | None:
    """Return the PTX instructions of a call; None for a call of another function."""
    if isinstance(call.callee, Assembly):
        return statements(call.callee.text)
    statement = intrinsic_statement(call)
    return None if statement is None else (statement,)


def translate_assembly(scope: Scope, call: Instruction) -> Item | None:
    """Return the result of a call with PTX instructions. Raises UnsupportedError for an instruction without a row."""
    registers = Registers(scope, call)
    types = call.type.items if isinstance(call.type, StructType) else (call.type,) * (call.type != VOID)
    inputs = [""] * len(call.operands)
    if isinstance(call.callee, Assembly):
        constraints = (own.strip("&") for own in call.callee.constraints.split(",") if not own.startswith("~"))
        inputs = [own for own in constraints if not own.startswith("=")]
    for number, (constraint, operand) in enumerate(zip(inputs, call.operands, strict=False)):
        names = [f"${len(types) + number}"] + [f"${constraint}"] * constraint.isdigit()
        value = scope.values.resolve(operand)
        for name in names:
            registers.values[name], registers.sources[name] = value, operand
    for statement in instructions_of(call) or ():
        _run(registers, statement)
    if not types:
        return None
    results = [_typed(registers, f"${number}", type) for number, type in enumerate(types)]
    return list(results) if isinstance(call.type, StructType) else results[0]


def _typed(registers: Registers, name: str, type: Type) -> Item:
    """Return a register as a number, as the elements of a vector, or as the pointer that it is."""
    pointer = registers.values.get(name)
    if isinstance(type, PointerType) and isinstance(pointer, Pointer):
        return pointer
    value = _result(registers, name)
    if not isinstance(type, SequenceType):
        return as_type(value, scalar_of(type))
    word = registers.let(as_type(value, scalar_of(IntType(8 * size_of(type)))))
    return list(regrouped([word], memory_scalar(type.item)))


def _result(registers: Registers, name: str) -> ir.Expr:
    value = registers.values.get(name)
    if isinstance(value, Pointer) or value is None:
        return registers.read(name, I64) if value is not None else registers.number(0)
    assert not isinstance(value, list)
    return value


def _run(registers: Registers, statement: Statement) -> None:
    """Execute an instruction, under its predicate."""
    if not statement.predicate:
        execute(registers, statement)
        return
    emitter = registers.scope.emitter
    condition = registers.read(statement.predicate, BOOL)
    condition = registers.let(condition if statement.holds else operation("not", condition))
    before = dict(registers.values)
    with emitter.block() as body:
        execute(registers, statement)
        merged = []
        for name, value in registers.values.items():
            if isinstance(value, ir.Expr) and before.get(name) is not value:
                assert isinstance(value.type, Scalar)
                register = emitter.register("predicated", value.type)
                merged.append((name, register))
                emitter.assign(register, value)
    for name, register in merged:
        assert isinstance(register.type, Scalar)
        old = before.get(name)
        initial = (
            as_type(old, register.type) if isinstance(old, ir.Expr) else constant(0, register.type, registers.span)
        )
        emitter.assign(register, initial)
        registers.values[name] = register
    emitter.emit(ir.If(condition, tuple(body), (), emitter.span))
