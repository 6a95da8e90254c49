"""Local arrays with an index that only the launch or its data determine, so that no compiler keeps them in registers.

Constants and counters of loops with constant bounds are known to a compiler that unrolls the loops. A register is known at run
time only if a value assigned to it is, or if a condition known at run time only selects one of its assignments.
"""

from ..ir import nodes as ir
from ..ir.walk import expressions, once_a_node, registers, statements
from ..language.types import Array
from .data_flow import DataFlow, Loop, conditions_of

Path = tuple[tuple[int, int], ...]
"""The conditional statements around an assignment, whose conditions are known at run time only: identity, and number of the arm."""


@once_a_node
def arrays_indexed_at_run_time(kernel: ir.Function) -> frozenset[str]:
    """Return the local arrays with such an index. Calls are inlined."""
    local = {one.array for one in statements(kernel.body) if isinstance(one, ir.Alloc) and one.type.space == "local"}
    if not local:
        return frozenset()
    unknown = {param.name for param in kernel.params if not isinstance(param.type, Array)}
    values = _Values(kernel, unknown)
    values.run(())
    accesses = (stmt.value if isinstance(stmt, ir.Let) else stmt for stmt in statements(kernel.body))
    return frozenset(
        access.array
        for access in accesses
        if isinstance(access, ir.Access) and access.array in local and _is_unknown(access.index, unknown)
    )


class _Values(DataFlow[Path]):
    """The registers with values known at run time only. assignments: the path of each assignment of a register."""

    def __init__(self, kernel: ir.Function, unknown: set[str]) -> None:
        super().__init__(kernel)
        self.unknown = unknown
        self.assignments: dict[str, set[Path]] = {}

    def traverse(self, control: Path) -> None:
        self.assignments = {}
        super().traverse(control)
        for name, paths in self.assignments.items():
            if len(paths) > 1:
                self.add(self.unknown, name)

    def visit(self, stmt: ir.Stmt, control: Path) -> None:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value):
                self.assignments.setdefault(name, set()).add(control)
                if isinstance(value, ir.Effect) or _is_unknown(value, self.unknown):
                    self.add(self.unknown, name)
            case ir.For(var=ir.Reg(name=name)) if _decides(stmt, self.unknown):
                self.add(self.unknown, name)

    def arms(self, stmt: ir.If | Loop, control: Path) -> tuple[Path, Path]:
        if not _decides(stmt, self.unknown):
            return control, control
        return (*control, (id(stmt), 0)), (*control, (id(stmt), 1))


def _decides(stmt: ir.If | Loop, unknown: set[str]) -> bool:
    """Return whether an unknown value selects an arm, or the number of iterations.

    A while loop is no evidence: nvcc unrolls one whose counter has a known limit, though its data may end it before.
    """
    conditions = (stmt.cond,) if isinstance(stmt, ir.If) else conditions_of(stmt) if isinstance(stmt, ir.For) else ()
    return any(_is_unknown(condition, unknown) for condition in conditions)


def _is_unknown(expr: ir.Expr, unknown: set[str]) -> bool:
    """Return whether an expression has a value that is known at run time only."""
    if isinstance(expr, ir.Special | ir.Extent) or (isinstance(expr, ir.Reg) and expr.name in unknown):
        return True
    inner = [*expressions(expr)]
    return any(isinstance(one, ir.Special) for one in inner) or any(one.name in unknown for one in registers(expr))
