"""Work queues: kernels whose warps claim work from a counter, so that the share of each warp is decided at run time."""

from ..ir import nodes as ir
from ..ir.walk import bodies, once_a_node, registers, statements
from .data_flow import DataFlow, Loop


@once_a_node
def uses_dynamic_work(kernel: ir.Function) -> bool:
    """Return whether a counter in global memory, to which lanes add, decides the end of a loop. A claimed value may
    reach a lane through
    another lane or through shared memory. Calls are inlined."""
    shared = {one.array for one in statements(kernel.body) if isinstance(one, ir.Alloc) and one.type.space == "shared"}
    claims = _Claims(kernel, shared)
    claims.run(False)
    loops = (one for one in statements(kernel.body) if isinstance(one, ir.While | ir.For))
    return any(_left_by(loop, claims.claimed) for loop in loops)


class _Claims(DataFlow[bool]):
    """The registers and arrays with claimed values. Control: whether an arm's condition depends on a claimed value."""

    def __init__(self, kernel: ir.Function, shared: set[str]) -> None:
        super().__init__(kernel)
        self.shared, self.claimed = shared, set[str]()

    def visit(self, stmt: ir.Stmt, control: bool) -> None:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value) if control or self.is_claimed(value):
                self.add(self.claimed, name)
            case ir.Store(array=array, value=value) if array in self.shared and _reads(value, self.claimed):
                self.add(self.claimed, array)

    def arms(self, stmt: ir.If | Loop, control: bool) -> tuple[bool, bool]:
        deciding = control or (isinstance(stmt, ir.If) and _reads(stmt.cond, self.claimed))
        return deciding, deciding

    def is_claimed(self, value: ir.Expr | ir.Effect) -> bool:
        match value:
            case ir.Atomic(op="add" | "sub" | "inc" | "dec", array=array):
                return array not in self.shared
            case ir.Load(array=array):
                return array in self.claimed
        return _reads(value, self.claimed)


def _reads(node: ir.Expr | ir.Effect, claimed: set[str]) -> bool:
    return (isinstance(node, ir.Reg) and node.name in claimed) or any(one.name in claimed for one in registers(node))


def _left_by(loop: ir.While | ir.For, claimed: set[str]) -> bool:
    """Return whether a claimed value decides the end of a loop."""
    if isinstance(loop, ir.While) and _reads(loop.cond, claimed):
        return True
    guards = (one for one in statements(loop.body) if isinstance(one, ir.If) and _reads(one.cond, claimed))
    return any(
        isinstance(one, ir.Break | ir.Return) for guard in guards for arm in bodies(guard) for one in statements(arm)
    )
