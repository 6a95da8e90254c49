"""Printed CUDA C++: golden texts, order of accesses, and compilation by nvcc."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Shared, f32, i32, u8, u32
from simtbed.engines.cuda.nvcc import OPTIONS, find_nvcc
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.ir import nodes as ir
from simtbed.ir.ops import TABLE
from simtbed.ir.spec import verify
from simtbed.language.types import BOOL, F32, I32, SCALARS, Array, Scalar
from simtbed.runtime.request import prepare_request
from simtbed.span import GENERATED

from tests.compilers import needs_nvcc

Golden = Callable[[str, str], None]


def printed(kernel: st.Kernel, block: int | tuple[int, ...] = 32, **args: Any) -> Source:
    """The kernel's source, as `launch` with these arguments would print it."""
    request = prepare_request(kernel, grid=1, block=block, args=args)
    return cuda_source(request.program, request.block)


def compile_all(sources: list[Source], folder: Path) -> None:
    """Compile all texts in one file and one call of nvcc, each in its own namespace."""
    lines = [line for source in sources for line in source.text.splitlines()]
    includes = sorted({line for line in lines if line.startswith("#include")})
    texts = [re.sub(r'#include.*|extern "C" ', "", source.text) for source in sources]
    bodies = [f"namespace part_{number} {{\n{text}\n}}\n" for number, text in enumerate(texts)]
    (folder / "all.cu").write_text("\n".join([*includes, *bodies]))
    options = ["-cubin", "-arch=sm_90a", "-Xcudafe", "--display_error_number"]
    options += [o for o in OPTIONS if o != "--resource-usage"]
    command = [str(find_nvcc()), *options, "-o", "all.cubin", "all.cu"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


# ------------------------------------------------------------------ printed text
@st.kernel
def block_sum(x: Global[f32], out: Global[f32], n: i32, BLOCK: Const) -> None:
    """out[b] = the sum of block b's slice of x."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    partial[t] = x[i] if i < n else f32(0)
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


def test_the_example_of_the_design(golden: Golden) -> None:
    source = printed(block_sum, 64, x=np.zeros(64, np.float32), out=np.zeros(1, np.float32), n=64, BLOCK=64)
    golden("cuda/block_sum.cu", source.text)
    assert (source.kernel, source.arguments, source.lengths) == ("block_sum", ("x", "out", "n"), ())
    assert source.written == {"out"}


@st.kernel
def own_names(out: Global[i32]) -> None:
    """Variables with the names of the language's thread indices."""
    lane = st.lane + 1
    warp = st.warp + lane
    out[st.lane] = lane + warp + st.lane + st.warp


def test_a_variable_called_lane_is_not_the_lane() -> None:
    text = printed(own_names, (8, 8), out=np.zeros(32, np.int32)).text
    lane, warp = re.findall(r"const int (\w+) =", text)
    assert f"int lane = {lane} + 1;" in text
    assert f"int warp = {warp} + lane;" in text
    assert f"out[{lane}] = lane + warp + {lane} + {warp};" in text
    assert len({lane, warp, "lane", "warp"}) == 4


@st.device
def scan(value: f32, row: Shared[f32]) -> f32:
    """Inclusive sum over the warp, through memory."""
    own = st.shared(f32, 32)
    total = value
    offset = 1
    while offset < 32 and row[0] >= 0:
        own[st.lane] = total
        st.syncwarp()
        if st.lane >= offset:
            total += own[st.lane - offset]
        st.syncwarp()
        offset *= 2
    return total


@st.kernel
def functions(x: Global[f32], out: Global[f32]) -> None:
    """Each call of `scan` has its own shared memory; values read once are printed at their use."""
    row = st.shared(f32, 32)
    weights = st.constant(f32, (0.5, 0.25))
    sums = st.registers(f32, 2)
    row[st.lane] = x[st.lane]
    st.sync()
    for k in st.unroll(range(2)):
        sums[k] = scan(row[st.lane] * weights[k], row)
    out[st.lane] = scan(sums[0] / sums[1], row)
    if len(x) > 32 and x[32] != 0:
        out[st.lane] = st.shuffle_down(sums[0], 1) + st.shuffle(sums[1], 0, 8, 0xFF)


def test_functions_and_folding(golden: Golden) -> None:
    source = printed(functions, x=np.zeros(32, np.float32), out=np.zeros(32, np.float32))
    golden("cuda/functions.cu", source.text)
    assert source.lengths == ("x",)


@st.kernel
def control(x: Global[i32], flags: Global[u8], out: Global[u32]) -> None:
    """Declarations of variables; loops; narrow integers; votes and atomics."""
    t = st.thread.x + st.thread.y * 8
    if t < 4:
        value = x[t] // 3
    elif x[t] % 2 == 0:
        value = -x[t]
    else:
        value = 0
    stop = value
    for j in range(stop):
        stop = stop - j
        scaled = x[j] * 2
        if scaled == 7:
            continue
        value += scaled
    for j in range(10, 0, -2):
        scaled = x[j]
        value = value ^ scaled
    while x[value & 7] > 0 and value != 5:
        value = st.atomic_add(x, 0, 1)
    flags[t] = (flags[t] + u8(t)) >> 1
    st.atomic_max(out, 0, st.ballot(value > 0))
    if not st.any(flags[t] == 0):
        return
    assert value < 100, '100% of "value"'
    print("value", value, value > 0, f32(value))


def test_control_flow(golden: Golden) -> None:
    arrays = {"x": np.zeros(64, np.int32), "flags": np.zeros(64, np.uint8), "out": np.zeros(1, np.uint32)}
    golden("cuda/control.cu", printed(control, (8, 4), **arrays).text)


# ------------------------------------------------------------------ all of it compiles
def every_operation() -> ir.Program:
    """Return a kernel with each row of the table for each of its types, operands and results in global memory."""
    params = {t.name: ir.Param(t.name, Array(t, None, "global"), GENERATED) for t in SCALARS.values()}
    body: list[ir.Stmt] = []
    for row in TABLE.values():
        for kind in row.types:
            types = row.operand_types(kind)
            args = []
            for number, type in enumerate(types):
                register = ir.Reg(f"{row.name}_{kind}_{number}", type, GENERATED)
                load = ir.Load(type.name, _const(len(body)), type, GENERATED)
                body.append(ir.Let(register, load, GENERATED))
                args.append(register)
            result = row.result_type(kind)
            op = ir.Op(row.name, tuple(args), result, GENERATED)
            body.append(ir.Store(result.name, _const(len(body)), op, GENERATED))
    program = ir.Program(ir.Function("every", tuple(params.values()), tuple(body), None, GENERATED), ())
    verify(program)
    return program


def _const(value: int | float, type: Scalar = I32) -> ir.Const:
    return ir.Const(value, type, GENERATED)


@pytest.mark.slow
@needs_nvcc
def test_every_operation_compiles_on_every_type(tmp_path: Path) -> None:
    source = cuda_source(every_operation(), (1, 1, 1))
    stores = re.findall(r"^ +\w+\[\d+\] = ", source.text, re.MULTILINE)
    assert len(stores) == sum(len(row.types) for row in TABLE.values())
    compile_all([source], tmp_path)


# ------------------------------------------------------------------ folding never moves an access past another
def body_text(*body: ir.Stmt, arrays: str = "xy") -> list[str]:
    """Return the lines of a kernel with this body over global i32 arrays."""
    params = tuple(ir.Param(n, Array(I32, None, "global"), GENERATED) for n in arrays)
    program = ir.Program(ir.Function("k", params, body, None, GENERATED), ())
    verify(program)
    return [line.strip() for line in cuda_source(program, (32, 1, 1)).text.splitlines()[4:-1]]


def temporary(number: int, value: ir.Expr | ir.Effect, type: Scalar = I32) -> tuple[ir.Reg, ir.Let]:
    register = ir.Reg(f"t@{number}", type, GENERATED)
    return register, ir.Let(register, value, GENERATED)


def load(array: str, index: int) -> ir.Load:
    return ir.Load(array, _const(index), I32, GENERATED)


def store(array: str, index: int, value: ir.Expr) -> ir.Store:
    return ir.Store(array, _const(index), value, GENERATED)


def test_a_load_read_once_is_printed_at_its_use() -> None:
    t, let = temporary(1, load("x", 1))
    assert body_text(let, store("y", 0, t)) == ["y[0] = x[1];"]


def test_a_load_remains_before_a_store() -> None:
    t, let = temporary(1, load("x", 1))
    assert body_text(let, store("x", 1, _const(5)), store("y", 0, t)) == ["int t_1 = x[1];", "x[1] = 5;", "y[0] = t_1;"]


def test_a_load_read_twice_is_loaded_once() -> None:
    t, let = temporary(1, load("x", 1))
    assert body_text(let, store("y", 0, t), store("y", 1, t))[0] == "int t_1 = x[1];"


def test_a_load_does_not_become_conditional() -> None:
    t, let = temporary(1, load("x", 1))
    chosen = ir.Op("select", (ir.Const(True, BOOL, GENERATED), _const(0), t), I32, GENERATED)
    assert body_text(let, store("y", 0, chosen)) == ["int t_1 = x[1];", "y[0] = true ? 0 : t_1;"]


def test_a_load_does_not_move_into_a_loop() -> None:
    t, let = temporary(1, load("x", 1))
    test = ir.Op("lt", (t, _const(3)), BOOL, GENERATED)
    (first, second, *_) = body_text(let, ir.While((), test, (store("x", 1, _const(9)),), GENERATED))
    assert (first, second) == ("int t_1 = x[1];", "while (t_1 < 3) {")


def test_an_index_that_changes_is_read_before_it_does() -> None:
    i = ir.Reg("i", I32, GENERATED)
    t, let = temporary(1, ir.Load("x", i, I32, GENERATED))
    lines = body_text(ir.Let(i, _const(1), GENERATED), let, ir.Let(i, _const(2), GENERATED), store("y", 0, t))
    assert lines == ["int i = 1;", "int t_1 = x[i];", "i = 2;", "y[0] = t_1;"]


def test_atomics_keep_their_order() -> None:
    first, add_one = temporary(1, ir.Atomic("add", "x", _const(0), _const(1), I32, GENERATED))
    second, add_two = temporary(2, ir.Atomic("add", "x", _const(0), _const(2), I32, GENERATED))
    total = ir.Op("sub", (first, second), I32, GENERATED)
    assert body_text(add_one, add_two, store("y", 0, total)) == [
        "int t_1 = atomicAdd(&x[0], 1);",
        "y[0] = t_1 - atomicAdd(&x[0], 2);",
    ]


def test_an_update_keeps_both_loads_of_its_index() -> None:
    inner, first = temporary(1, load("y", 0))
    old, second = temporary(2, ir.Load("x", inner, I32, GENERATED))
    again, third = temporary(3, load("y", 0))
    new = ir.Op("add", (old, _const(1)), I32, GENERATED)
    (line,) = body_text(first, second, third, ir.Store("x", again, new, GENERATED))
    assert line == "x[y[0]] = x[y[0]] + 1;"


def test_a_loop_that_changes_its_bound_counts_to_the_first() -> None:
    n, i = ir.Reg("n", I32, GENERATED), ir.Reg("i", I32, GENERATED)
    body = (ir.Let(n, _const(0), GENERATED),)
    lines = body_text(ir.Let(n, _const(9), GENERATED), ir.For(i, _const(0), n, 1, False, body, GENERATED))
    assert lines[1:3] == ["int i_stop_1 = n;", "for (int i = 0; i < i_stop_1; ++i) {"]


def test_a_negated_test_reads_plainly() -> None:
    x, i = (ir.Reg(n, t, GENERATED) for n, t in (("x", F32), ("i", I32)))
    zero = {x: _const(0.0, F32), i: _const(0)}

    def line(name: str, register: ir.Reg) -> str:
        test = ir.Op("not", (ir.Op(name, (register, zero[register]), BOOL, GENERATED),), BOOL, GENERATED)
        return body_text(
            ir.Let(register, zero[register], GENERATED), ir.If(test, (ir.Return(None, GENERATED),), (), GENERATED)
        )[1]

    assert line("ne", i) == "if (i == 0) return;"
    assert line("eq", x) == "if (x != 0.0f) return;"
    assert line("lt", x) == "if (!(x < 0.0f)) return;"  # true of a NaN


# ------------------------------------------------------------------ names, places, shared memory
@needs_nvcc
def test_names_that_cplusplus_has_already(tmp_path: Path) -> None:
    @st.device
    def hypot(float: f32, λ: f32) -> f32:
        return st.fma(float, float, λ * λ)

    @st.kernel
    def exp(double: Global[f32], threadIdx: i32) -> None:
        min_ = hypot(double[0], double[1])
        register = min(min_, 1.0)
        double[threadIdx] = st.exp(register)

    source = printed(exp, double=np.zeros(2, np.float32), threadIdx=1)
    assert source.kernel == "exp_2"
    compile_all([source], tmp_path)


def test_every_line_is_placed_where_the_source_has_it() -> None:
    source = printed(block_sum, 64, x=np.zeros(64, np.float32), out=np.zeros(1, np.float32), n=64, BLOCK=64)
    spans = [line.span for line in source.lines]
    at: tuple[str, int] | None = None
    texts = iter(source.lines)
    for text in source.with_lines().splitlines():
        if actual := re.match(r'#line (\d+) "(.*)"', text):
            at = actual[2], int(actual[1])
            continue
        line = next(texts)
        assert line.text == text
        if line.span is not None:
            assert at == (line.span.file, line.span.line)
        at = at and (at[0], at[1] + 1)
    assert sum(span is not None for span in spans) > 10


def test_much_shared_memory_is_dynamic() -> None:
    @st.kernel
    def large(out: Global[f32]) -> None:
        first = st.shared(f32, 10000)
        second = st.shared(st.float4, 1000)
        first[st.lane] = 1.0
        second[st.lane] = st.float4(1.0, 2.0, 3.0, 4.0)
        out[0] = first[0] + second[0].x

    source = printed(large, out=np.zeros(1, np.float32))
    assert source.carved_bytes == 40000 + 16000
    assert "float4* second = reinterpret_cast<float4*>(shared_memory + 40000);" in source.text
    assert "__shared__ float" not in source.text


def test_long_lines_are_broken() -> None:
    @st.kernel
    def long(out: Global[f32], some_coefficient: f32, other_coefficient: f32) -> None:
        out[st.thread.x] = (
            some_coefficient * other_coefficient + some_coefficient / other_coefficient
            - st.fma(some_coefficient, other_coefficient, some_coefficient) * (other_coefficient - some_coefficient)
        )  # fmt: skip

    text = printed(long, out=np.zeros(32, np.float32), some_coefficient=1.0, other_coefficient=2.0).text
    assert max(map(len, text.splitlines())) <= 120
    assert "out[int(threadIdx.x)] = some_coefficient * other_coefficient" in text


def test_writes_of_other_blocks_are_read_after_a_grid_barrier() -> None:
    """With `__restrict__` nvcc cached `running[0]`, and a block waited forever."""

    @st.kernel
    def leave_together(running: st.Global[st.i32], table: st.Global[st.i32], out: st.Global[st.i32]) -> None:
        while running[0] != 0:
            st.grid_sync()
            if st.block.x == 0:
                running[0] = 0
            st.grid_sync()
        out[st.block.x] = table[st.block.x]

    args = {"running": np.ones(1, np.int32), "table": np.arange(2, dtype=np.int32), "out": st.empty(2, st.i32)}
    text = st.launch(leave_together, grid=2, block=1, args=args, cooperative=True).source
    assert "int* running" in text and "int* out" in text
    assert "const int* __restrict__ table" in text
