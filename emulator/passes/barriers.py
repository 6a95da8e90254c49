"""Block barriers in a statement, arrays a kernel changes, and whether its results depend on the order of warps."""

from ..ir import nodes as ir
from ..ir.effects import MBARRIER_OPS, is_ordered, performed, row_of, written_array
from ..ir.walk import bodies, once_a_node, statements
from ..language.types import Scalar


@once_a_node
def holds_barrier(stmt: ir.Stmt) -> bool:
    """Whether the statement holds a block barrier, at any depth."""
    row = row_of(stmt)
    if row is not None:
        return row.scope == "block"
    return any(holds_barrier(s) for b in bodies(stmt) for s in b)


def changed_arrays(kernel: ir.Function) -> tuple[str, ...]:
    """Global arrays the kernel may change, in parameter order."""
    changed = {written_array(stmt) for stmt in statements(kernel.body)}
    return tuple(p.name for p in kernel.params if p.name in changed)


def order_matters(kernel: ir.Function) -> bool:
    """Return whether warps must run in a fixed order for reproducible results.

    They must if the kernel prints, uses the old value of an atomic operation, has ordered loads and stores, adds
    floats atomically, or applies different atomic operations to one array.
    """
    kinds: dict[str, str] = {}
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.Print):
            return True
        access = performed(stmt)
        if isinstance(access, ir.Load | ir.Store) and is_ordered(access):
            return True
        if not isinstance(stmt, ir.Let):
            continue
        value = stmt.value
        if isinstance(value, ir.CompareSwap):
            return True
        if isinstance(value, ir.Atomic):
            float_sum = not (isinstance(value.type, Scalar) and value.type.is_integer)
            if stmt.target is not None or float_sum or value.op in ("exchange", "inc", "dec", *MBARRIER_OPS):
                return True
            if kinds.setdefault(value.array, value.op) != value.op:
                return True
    return False
