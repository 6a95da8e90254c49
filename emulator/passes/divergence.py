"""Divergence analysis: uniform and affine values, divergent loops, assignments that need no merge.

The stride of a value is its difference between neighbouring active lanes: 0 (uniform), another number (affine),
"dynamic" (affine with a stride known only at run time) or "varying".

A region is the path of divergent branches and loops around a statement. All lanes in one region execute its statements
together. An assignment in the innermost region that contains every mention of its register reaches all lanes that may
read the register. It needs no merge, and a uniform value remains uniform.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..ir import counting
from ..ir import nodes as ir
from ..ir.effects import row_of
from ..ir.names import elements
from ..ir.walk import registers, statements
from ..language.intrinsics import WARP_SIZE
from ..language.types import Array, Scalar
from .data_flow import DataFlow, Exit, Loop, conditions_of, ends_loop

Stride = int | Literal["dynamic", "varying"]
Region = tuple[tuple[str, int], ...]
Dim3 = tuple[int, int, int]

THREAD_AXES = {name: axis for name, (index, axis) in ir.INDICES.items() if index == "thread"}

_WIDEST = 1 << 30
"""Larger strides are treated as dynamic."""


@dataclass(frozen=True)
class Divergence:
    """The result of the analysis.

    registers: the stride of every scalar register; a vector's is 0 or "varying".
    multiples: of integer registers, a power of two that divides lane 0's value.
    complete: sites of assignments that reach every lane that may read the register.
    uniform_exits: sites of break, continue and return that all lanes of the iteration or the frame take at once.
    divergent_loops: sites of loops whose lanes leave in different iterations.
    """

    registers: dict[str, Stride]
    multiples: dict[str, int]
    complete: frozenset[int]
    uniform_exits: frozenset[int]
    divergent_loops: frozenset[int]
    block: Dim3

    def stride_of(self, expr: ir.Expr) -> Stride:
        """The stride of an expression."""
        return stride(expr, self.registers, self.block) or 0

    def multiple(self, expr: ir.Expr) -> int:
        """A power of two, at most MOST, that divides the value of lane 0; of an affine expression."""
        return multiple(expr, self.multiples, self.block)


def thread_index(block: Dim3, axis: int) -> npt.NDArray[np.int32]:
    """Return int32[warps, 32], the thread's index on an axis. Lanes beyond the block continue to count in x."""
    x, y, _ = block
    threads = int(np.prod(block))
    linear = np.arange(-(-threads // WARP_SIZE) * WARP_SIZE).reshape(-1, WARP_SIZE)
    index = linear if axis == 0 and threads == x else linear // (1, x, x * y)[axis] % block[axis]
    index = np.where(linear < threads, index, index[:, :1] + (linear % WARP_SIZE) * _step(index, linear < threads))
    return index.astype(np.int32)


def _step(index: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> int:
    steps = np.diff(index, axis=1)[valid[:, 1:]]
    return int(steps[0]) if len(steps) else 0


def stride(expr: ir.Expr, environment: dict[str, Stride], block: Dim3) -> Stride | None:
    """Return the stride of an expression, given those of the registers; None if that of a register is unknown."""
    match expr:
        case ir.Const() | ir.Extent():
            return 0
        case ir.Reg():
            return environment.get(expr.name)
        case ir.Special():
            return _special(expr.name, block)
        case ir.Op():
            args = [stride(a, environment, block) for a in expr.args]
            return _operation(expr, [a for a in args if a is not None]) if None not in args else None
        case ir.Within():
            flat = stride(expr.flat, environment, block)
            operand_strides = [stride(part, environment, block) for part in expr.index if part is not None]
            return flat if flat != 0 or all(part == 0 for part in operand_strides) else "varying"
        case ir.Defined():
            within = [stride(a, environment, block) for a in expr.value.args]
            return None if None in within else 0 if all(w == 0 for w in within) else "varying"
        case ir.Pack():
            operand_strides = [stride(a, environment, block) for a in expr.args]
            return None if None in operand_strides else 0 if all(p == 0 for p in operand_strides) else "varying"
        case ir.Component():
            return stride(expr.value, environment, block)
    raise TypeError(f"{type(expr).__name__} is left after unrolling")


def _special(name: str, block: Dim3) -> Stride:
    if name == "lane":
        return 1
    if name not in THREAD_AXES:
        return 0
    steps = np.diff(thread_index(block, THREAD_AXES[name]), axis=1)
    return int(steps.flat[0]) if (steps == steps.flat[0]).all() else "varying"


def _operation(op: ir.Op, args: list[Stride]) -> Stride:
    if all(a == 0 for a in args):
        return 0
    if "varying" in args or not (isinstance(op.type, Scalar) and op.type.is_integer):
        return "varying"
    first = args[0]
    match op.name:
        case "add" | "sub":
            second = args[1]
            if isinstance(first, int) and isinstance(second, int):
                return _bounded(first + second if op.name == "add" else first - second)
            return "dynamic"
        case "neg":
            return -first if isinstance(first, int) else first
        case "mul":
            second = args[1]
            if 0 not in (first, second):
                return "varying"
            factor, other = (op.args[0], second) if first == 0 else (op.args[1], first)
            if isinstance(factor, ir.Const) and isinstance(other, int):
                return _bounded(int(factor.value) * other)
            return "dynamic"
        case "shl":
            count = op.args[1]
            if isinstance(count, ir.Const) and 0 <= count.value < op.type.bits:
                return _bounded(first << int(count.value)) if isinstance(first, int) else first
            return "varying"
        case "select":
            return _chosen(args)
    source = op.args[0].type
    if op.name.startswith("cast_") and isinstance(source, Scalar) and source.is_integer and op.type.size <= source.size:
        return first  # wrapping keeps the difference of neighbours, modulo the width
    return "varying"


MOST = 1024
"""The largest power of two in the analysis of multiples."""


def multiple(expr: ir.Expr, environment: dict[str, int], block: Dim3) -> int:
    """A power of two that divides lane 0's value, given those of the registers. Wrapping does not change it."""
    match expr:
        case ir.Const():
            return _power(int(expr.value)) if expr.type.is_integer else 1
        case ir.Reg():
            return environment.get(expr.name, MOST)
        case ir.Special(name="lane"):
            return MOST
        case ir.Special() if expr.name in THREAD_AXES:
            first = thread_index(block, THREAD_AXES[expr.name])[:, 0]
            return min(_power(int(n)) for n in first)
        case ir.Within():
            return multiple(expr.flat, environment, block)
        case ir.Op(type=Scalar() as type) if type.is_integer:
            return _multiple_of(expr, [multiple(a, environment, block) for a in expr.args])
    return 1


def _multiple_of(op: ir.Op, args: list[int]) -> int:
    match op.name:
        case "add" | "sub" | "min" | "max":
            return min(args)
        case "mul":
            return min(args[0] * args[1], MOST)
        case "neg":
            return args[0]
        case "shl":
            count = op.args[1]
            return (
                min(args[0] << int(count.value), MOST) if isinstance(count, ir.Const) and 0 <= count.value < 32 else 1
            )
        case "select":
            return min(args[1:])
    source = op.args[0].type
    whole = op.name.startswith("cast_") and isinstance(source, Scalar) and source.is_integer
    return args[0] if whole else 1


def _power(value: int) -> int:
    return min(value & -value, MOST) if value else MOST


def _chosen(args: list[Stride]) -> Stride:
    condition, first, second = args
    return first if condition == 0 and first == second and isinstance(first, int) else "varying"


def _bounded(step: int) -> Stride:
    return step if abs(step) < _WIDEST else "dynamic"


def join(first: Stride | None, second: Stride | None) -> Stride | None:
    """Return the stride of a register with two assigned values; None for an unknown stride."""
    if first is None or second is None or first == second:
        return first if second is None else second
    return "varying" if "varying" in (first, second) else "dynamic"


@dataclass
class _Assignment:
    name: str
    value: Stride | None
    region: Region
    site: int


def analyse_divergence(kernel: ir.Function, private: frozenset[str], block: Dim3) -> Divergence:
    """Analyse an inlined, unrolled, numbered kernel for blocks of this shape."""
    analysis = _Analysis(kernel, private, block)
    analysis.run(())
    complete, uniform, divergent = map(frozenset, (analysis.complete, analysis.uniform_exits, analysis.divergent_loops))
    return Divergence(analysis.registers, analysis.multiples, complete, uniform, divergent, block)


class _Analysis(DataFlow[Region]):
    """Strides only become less uniform and loops only more divergent, so the analysis ends."""

    def __init__(self, kernel: ir.Function, private: frozenset[str], block: Dim3) -> None:
        super().__init__(kernel)
        self.private, self.block = private, block
        self.divergent_loops: set[int] = set()
        self.reads: dict[int, tuple[str, ...]] = {}
        self.arrays = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        self.arrays |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        self.registers: dict[str, Stride] = {p.name: 0 for p in kernel.params if not isinstance(p.type, Array)}
        self.multiples = dict.fromkeys(self.registers, 1)

    def traverse(self, control: Region) -> None:
        self.regions: dict[str, Region] = {}
        self.assignments: list[_Assignment] = []
        self.uniform_exits: set[int] = set()
        super().traverse(control)
        self.complete = self.finish_strides()

    def finish_strides(self) -> set[int]:
        """Strides from the assignments of one traversal; the sites of those that are complete."""
        complete = set()
        for assignment in self.assignments:
            whole = assignment.name in self.private or self.regions[assignment.name] == assignment.region
            if whole:
                complete.add(assignment.site)
            self.join_stride(assignment.name, assignment.value if whole or assignment.value is None else "varying")
        return complete

    def join_stride(self, name: str, value: Stride | None) -> None:
        """Join the stride of a register with that of a value assigned to it."""
        self.put(self.registers, name, join(self.registers.get(name), value))

    def join_multiple(self, name: str, power: int) -> None:
        """Join the known divisor of a register with that of a value assigned to it."""
        self.put(self.multiples, name, min(power, self.multiples.get(name, MOST)))

    def multiple(self, expr: ir.Expr) -> int:
        return multiple(expr, self.multiples, self.block)

    def stride_of(self, expr: ir.Expr) -> Stride | None:
        return stride(expr, self.registers, self.block)

    def read(self, stmt: ir.Stmt) -> tuple[str, ...]:
        """The registers a statement reads, its bodies left out."""
        if stmt.site not in self.reads:
            self.reads[stmt.site] = tuple(dict.fromkeys(r.name for r in registers(stmt)))
        return self.reads[stmt.site]

    def mention(self, names: Iterable[str], region: Region) -> None:
        for name in names:
            common = self.regions.setdefault(name, region)
            if common == region:
                continue
            same = (a == b for a, b in zip(common, region, strict=False))
            self.regions[name] = common[: next((i for i, s in enumerate(same) if not s), min(len(common), len(region)))]

    # -------------------------------------------------------------- statements
    def visit(self, stmt: ir.Stmt, control: Region) -> None:
        self.mention(self.read(stmt), control)
        match stmt:
            case ir.Let(target=ir.Reg() as target):
                self.mention([target.name], control)
                value = self.right_side(stmt)
                self.join_stride(target.name, value)
                self.join_multiple(target.name, 1 if isinstance(stmt.value, ir.Effect) else self.multiple(stmt.value))
                self.assignments.append(_Assignment(target.name, value, control, stmt.site))
            case ir.Alloc(type=Array(space="register")):
                # Its registers start as zeros and may be read unassigned: their region is the whole kernel.
                names = elements(stmt.array, stmt.type.length)
                self.mention(names, ())
                self.registers = dict.fromkeys(names, 0) | self.registers
            case ir.For():
                self.join_stride(stmt.var.name, self.stride_of(stmt.start))
                self.join_multiple(stmt.var.name, min(self.multiple(stmt.start), self.multiple(counting.step_of(stmt))))
                if not isinstance(stmt.step, int) or stmt.limit is not None:
                    self.join_stride(stmt.var.name, self.stride_of(counting.moved(stmt)))

    def differs(self, *conditions: ir.Expr) -> bool:
        """Return whether lanes may have different values of one of the conditions."""
        return any(self.stride_of(condition) not in (0, None) for condition in conditions)

    def arms(self, stmt: ir.If | Loop, control: Region) -> tuple[Region, Region]:
        if not isinstance(stmt, ir.If) or not self.differs(stmt.cond):
            return control, control
        return (*control, ("arm 0", stmt.site)), (*control, ("arm 1", stmt.site))

    def iteration(self, loop: Loop, control: Region) -> Region:
        return (*control, ("loop", loop.site)) if loop.site in self.divergent_loops else control

    def leaves(self, leaving: Exit[Region]) -> bool:
        """Return whether only some of the lanes of the scope leave it here."""
        if leaving.scope.control == leaving.control:
            self.uniform_exits.add(leaving.stmt.site)
            return False
        return True

    def after(self, stmt: ir.Stmt, exits: Sequence[Exit[Region]], control: Region) -> Region:
        return (*control, ("after", stmt.site)) if any(one.scope.kind != "kernel" for one in exits) else control

    def repeated(self, loop: Loop, exits: Sequence[Exit[Region]]) -> None:
        if self.differs(*conditions_of(loop)) or any(ends_loop(one) for one in exits):
            self.add(self.divergent_loops, loop.site)

    def right_side(self, let: ir.Let) -> Stride | None:
        """The stride of the value of a Let."""
        row, node = row_of(let), let.value
        if row is None:
            assert not isinstance(node, ir.Effect)
            return self.stride_of(node)
        deciding = row.uniform_where(node)
        if deciding is None or (isinstance(node, ir.Load) and self.arrays[node.array].space == "local"):
            return "varying"
        strides = [self.stride_of(expr) for expr in deciding]
        return None if None in strides else 0 if all(stride == 0 for stride in strides) else "varying"
