"""One finding a cause: accesses of a pair of lines, operands of a line, and what follows an endless loop."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each, each_row

ENGINES: tuple[EngineName, ...] = ("numpy", "jit")
HEAD = "__global__ void k(int *x, int *y, int *out) {\nint t = threadIdx.x;\n__shared__ int s[64];\n"


@dataclass(frozen=True)
class Mistake:
    """Lines of a kernel k(int *x, int *y, int *out) with one mistake. kind, lines: of its one finding, from line 4 on. note: in a note."""

    name: str
    body: str
    lines: tuple[int, ...]
    kind: str = "race"
    note: str = ""


MISTAKES = (
    Mistake("update", "x[0] = x[0] + 1;", (4,)),
    Mistake("operands", "s[t] = t;\nout[t] = s[t ^ 1] + s[t ^ 2] * s[63 - t];", (4, 5)),
    Mistake("read and written on both lines", "s[t] = t; out[t] = s[t ^ 1];\ns[t] = s[t ^ 3] + 1;\n__syncthreads();", (4,)),
    Mistake("symmetric pairs", "x[t] += y[t ^ 1];\ny[t] += x[t ^ 1];", (4, 5)),
    Mistake(
        "one barrier for two arrays",
        "__shared__ int u[64];\ns[t] = t;\nu[t] = t;\nout[t] = s[t / 2] + u[t ^ 32];",
        (5, 7),
        note="to order them: __syncthreads() between lines 6 and 7",
    ),
    Mistake(
        "one barrier at the end of a loop",
        "__shared__ int u[64];\nfor (int n = 0; n < 3; n++) {\ns[t] = t;\nu[t] = t;\n__syncthreads();\nout[t] = s[63 - t] + u[t ^ 32];\n}",
        (6, 9),
        note="the same cause: u in lines 7 and 9",
    ),
    Mistake("unrolled", "for (int n = 0; n < 4; n++)\ns[t] = s[t ^ 1 << n] + 1;", (5,)),
    Mistake("polled by plain reads", "if (t == 40) y[0] = 7;\nwhile (atomicAdd(x, 0) == 0);\nout[t] = y[0];", (5,), "step limit"),
    Mistake(
        "plain flag",
        "if (t == 40) { y[0] = 7; atomicExch(x, 1); }\nif (t == 0)\nwhile (x[0] == 0);",
        (4, 6),
        note="a consequence: this loop",
    ),
)  # fmt: skip


def launch(kernel: Any, engine: EngineName) -> st.Result:
    arguments = tuple(np.zeros(64, np.int32) for _ in range(3))
    return st.launch(
        kernel, grid=1, block=64, args=arguments, check="all", faults="return", engine=engine, step_limit=100
    )


def check(row: Mistake) -> None:
    kernel: Any = st.cuda_source(f"{HEAD}{row.body}\n}}")["k"]
    for engine in ENGINES:
        result = launch(kernel, engine)
        assert [fault.kind for fault in result.faults] == [row.kind], result.faults
        (fault,) = result.faults
        assert tuple(sorted({span.line for span in (fault.span, fault.related) if span is not None})) == row.lines, (
            fault
        )
        assert any(row.note in note for note in fault.notes)


@pytest.mark.slow
def test_a_mistake_is_one_finding() -> None:
    check_each(MISTAKES, check, lambda row: row.name)


INDEPENDENT = "s[t] = t;\nint v = s[t ^ 32];\nwhile (atomicAdd(x, 0) == 0);\nout[t] = v;"


@pytest.mark.slow
def test_a_race_before_the_loop_is_a_finding_of_its_own() -> None:
    kernel: Any = st.cuda_source(f"{HEAD}{INDEPENDENT}\n}}")["k"]
    faults = launch(kernel, "jit").faults
    assert sorted(fault.kind for fault in faults) == ["race", "step limit"]
    assert not any("a consequence" in note for fault in faults for note in fault.notes)


COPIES = (
    ("one stores", "int v = x[t % 32]; if (t < 32) x[t % 32] = v + 1;", True),
    ("all store", "int v = x[t % 32]; x[t % 32] = v + t;", False),
    ("another address", "int v = x[t]; if (t < 32) x[63 - t] = v + 1;", False),
    ("lanes store", "if (t < 32) s[t / 2] = t; __syncthreads(); out[t] = s[0];", True),
    ("lanes store results", "if (t < 32) x[t / 2] = t;", False),
)


@pytest.mark.slow
@each_row(COPIES, lambda row: row[0])
def test_races_of_copies(row: tuple[str, str, bool]) -> None:
    """They are races, but in kernels whose threads hold copies of the elements of tensors."""
    result = launch(st.cuda_source(f"{HEAD}{row[1]}}}")["k"], "jit")
    assert {(fault.kind, fault.of_copies) for fault in result.faults} == {("race", row[2])}
