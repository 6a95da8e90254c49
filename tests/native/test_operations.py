"""Every row of the op table in a native function gives what the table says."""

import ctypes

import numpy as np
import pytest
from simtbed.ir import nodes as ir
from simtbed.llvm.compiler import LOOPS, NATIVE, compiled
from simtbed.native.text import module
from simtbed.span import GENERATED
from simtbed.testing.conformance.operations import Group, group_id, groups, request


def _for_one_thread(kernel: ir.Function, count: int) -> ir.Function:
    """A kernel of a group, as a loop over its elements."""
    start, guarded = kernel.body
    assert isinstance(start, ir.Let) and isinstance(start.target, ir.Reg) and isinstance(guarded, ir.If)
    first, last = (ir.Const(n, start.target.type, GENERATED) for n in (0, count))  # type: ignore[arg-type]
    loop = ir.For(start.target, first, last, 1, False, guarded.then, GENERATED)
    return ir.Function(kernel.name, kernel.params, (loop,), None, GENERATED)


@pytest.mark.parametrize("group", [*groups()], ids=group_id)
def test_operations_mean_what_the_table_says(group: Group) -> None:
    rows = group[1]
    requests, operands = request(group)
    text = module(_for_one_thread(requests.program.kernel, len(operands[0])))
    _, library = compiled(None, lambda: (b"", text), NATIVE, bytes, passes=LOOPS)
    arrays = [np.ascontiguousarray(requests.arguments[p.name]) for p in requests.program.kernel.params]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library.address)(*(a.ctypes.data for a in arrays))
    actual = {p.name: a for p, a in zip(requests.program.kernel.params, arrays, strict=True)}
    for row in rows:
        with np.errstate(all="ignore"):
            expected = row.meaning(*operands)
        agree = row.policy_for(group[0]).agree(actual[f"out_{row.name}"], expected)
        wrong = [[v[n] for v in operands] for n in np.flatnonzero(~agree)[:3]]
        assert agree.all(), f"{row.name}: {wrong}"
