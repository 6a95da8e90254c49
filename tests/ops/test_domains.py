"""The arithmetic check reports exactly the operands that the op table puts outside a row's domain, on both emulators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.ir import nodes as ir
from simtbed.ir.walk import rewrite
from simtbed.runtime.engine import Engine
from simtbed.runtime.specialisation import Specialisation
from simtbed.span import Span

from tests.ops.programs import Group, group_id, groups, request

BOUNDED = [group for group in groups() if any(row.domain for row in group[1])]


@pytest.mark.parametrize("engine", [LlvmEngine(), NumpyEngine()], ids=lambda engine: engine.name)
@pytest.mark.parametrize("group", BOUNDED, ids=group_id)
def test_what_lies_outside_is_reported(group: Group, engine: Engine) -> None:
    launch, operands = request(group)
    rows = {row.name: number for number, row in enumerate(group[1], 1)}

    def placed(node: Any) -> Any:
        line = rows.get(node.name) if isinstance(node, ir.Op) and isinstance(node.args[0], ir.Reg) else None
        if line is None or node.args[0].name == "i":
            return node
        return replace(node, span=Span("rows", line, 1, line, 2))

    kernel = launch.program.kernel
    program = ir.Program(replace(kernel, body=tuple(rewrite(stmt, placed) for stmt in kernel.body)), ())
    found = engine.run(
        replace(launch, specialisation=Specialisation.of_program(program), checks=frozenset({"arithmetic"}))
    ).faults
    assert {fault.kind for fault in found} <= {"arithmetic"}
    counts = {fault.span.line: fault.count for fault in found}
    for row in group[1]:
        with np.errstate(all="ignore"):
            outside = int((~row.domain.holds(*operands)).sum()) if row.domain else 0
        assert counts.get(rows[row.name], 0) == outside, row.name
