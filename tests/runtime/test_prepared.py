"""Preparation of programs: the passes run once for all sets of checks."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.ir import nodes as ir
from simtbed.runtime import prepared


def test_a_launch_with_checks_and_counters_unrolls_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @st.kernel
    def twice(a: st.Global[st.f32]) -> None:
        for _ in st.unroll(range(2)):
            a[st.thread.x] += 1.0

    unrolled: list[str] = []
    before: Any = vars(prepared)["unroll"]

    def noted(program: ir.Program) -> Any:
        unrolled.append(program.kernel.name)
        return before(program)

    monkeypatch.setattr(prepared, "unroll", noted)
    args = {"a": np.zeros(32, np.float32)}
    result = st.launch(twice, grid=1, block=32, args=args, engine="numpy", check="all", counters=True)
    assert result.counters is not None and result["a"][0] == 2.0
    assert unrolled == ["twice"]
