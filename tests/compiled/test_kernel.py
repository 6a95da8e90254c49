"""The compiled view of complete kernels, with nvcc and nvdisasm."""

import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import SimtbedError
from simtbed.compiled import kernel
from simtbed.engines.cuda.sass import Control, parse

from tests.compilers import needs_sass


@st.kernel
def rows(starts: st.Global[st.i32], values: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[i] = the sum of row i of a matrix."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += values[k]
    out[i] = total


@st.kernel
def dots(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """Every thread sums a shared array, which nvcc reads four elements at a time."""
    part = st.shared(st.f32, 64)
    t = st.thread.x
    part[t] = x[t]
    st.sync()
    total = 0.0
    for k in st.unroll(range(64)):
        total += part[k]
    out[t] = total


def rows_of(lengths: list[int]) -> st.Result:
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    args = {"starts": starts, "values": np.ones(starts[-1], np.float32), "out": st.empty(len(lengths), st.f32)}
    return st.launch(rows, grid=len(lengths) // 32, block=32, args=args, compiled=True)


@needs_sass
@pytest.mark.slow
def test_an_unrolled_loop_and_its_rest_load_as_the_source() -> None:
    lengths = np.random.default_rng(2).integers(0, 40, 128).tolist()
    result = rows_of(lengths).compiled()
    loads = [
        one for one in result.instructions if one.instruction.opcode == "LDG" and result.name and _in_loop(one, result)
    ]
    assert len(loads) > 4  # nvcc unrolls
    assert sum(one.threads for one in loads) == sum(lengths)


def _in_loop(instruction: object, result: object) -> bool:
    text = result.launched.source.lines[instruction.place[0] - 1].text  # type: ignore[attr-defined]
    return "values[k]" in text


@needs_sass
@pytest.mark.slow
def test_equal_rows_take_the_unrolled_body_alone() -> None:
    result = rows_of([16] * 32).compiled()
    loads = [one for one in result.instructions if one.instruction.opcode == "LDG" and _in_loop(one, result)]
    assert {one.warps for one in loads} == {0.0, 1.0}
    assert sum(one.warps for one in loads) == 16


@needs_sass
@pytest.mark.slow
def test_merged_accesses_are_counted_as_in_machine_code() -> None:
    args = {"x": np.ones(64, np.float32), "out": st.empty(64, st.f32)}
    result = st.launch(dots, grid=1, block=64, args=args, compiled=True)
    view = result.compiled()
    assert result.counters.total("shared_load_wavefronts") == 2 * 64
    assert view.memory["shared_load_wavefronts"] == 2 * 16 * 2  # 16 bytes for all lanes take two phases
    (difference,) = view.differences
    assert difference.what == "32 shared loads are executed, 128 in the source"
    assert all(one.instruction.control is not None for one in view.instructions)


@st.kernel
def differences(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    out[st.thread.x] = x[st.thread.x] - x[st.thread.x ^ 1]


@pytest.mark.slow
def test_the_bits_of_a_nan_are_no_difference() -> None:
    """An H200 makes 0x7fffffff of a difference without a value, a CPU 0xffc00000."""
    x = np.array([np.inf, np.inf, np.nan, 1] * 8, np.float32)
    result = st.launch(differences, grid=1, block=32, args={"x": x, "out": st.empty(32, "f32")}, compiled=True)
    assert np.isnan(result.out).all() and result.compiled().output_differences == {}


def test_without_its_arrays_there_is_no_compiled_view() -> None:
    args = {"x": np.ones(64, np.float32), "out": st.empty(64, st.f32)}
    result = st.launch(dots, grid=1, block=64, args=args)
    with pytest.raises(SimtbedError, match="launch with compiled=True"):
        result.compiled()


def test_scheduling_control_is_decoded() -> None:
    """Two instructions of nvdisasm 13 -hex, with scoreboards as their operands require."""
    listing = """\t.section\t.text.kernel,"ax",@progbits
        /*0040*/                   IMAD.WIDE R2, R5, 0x4, R2 ;        /* 0x0000000405027825 */
                                                                      /* 0x001fca00078e0202 */
        /*0050*/                   LDG.E R0, desc[UR4][R2.64] ;       /* 0x0000000402007981 */
                                                                      /* 0x000ea4000c1e1900 */
"""
    product, load = (one.control for one in parse(listing, "kernel"))
    assert product == Control(stall=5, yields=True, writes=None, reads=None, waits=(0,), reuse=())
    assert load == Control(stall=2, yields=False, writes=2, reads=None, waits=(), reuse=())


GUARDED = """
import simtbed as st

@st.kernel
def guarded(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i64) -> None:
    i = st.i64(st.block_dim.x * st.block.x + st.thread.x)
    if i >= n:
        return
    out[i] = x[i]
"""


@needs_sass
@pytest.mark.slow
@pytest.mark.parametrize("name", ["<cell 1>", "folder/relative.py", "/nowhere/absolute.py"])
def test_the_name_of_a_source_file_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of a notebook, and a module from a relative folder of sys.path."""
    _compare_guarded(name, monkeypatch)


@needs_sass
@pytest.mark.slow
def test_a_relative_name_refers_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second folder must not find the line table of the first in the cache."""
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        monkeypatch.chdir(folder)
        _compare_guarded("relative.py", monkeypatch)


def _compare_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch GUARDED, read from a file of this name, and compare its compiled view with its source."""
    monkeypatch.setitem(linecache.cache, name, (len(GUARDED), None, GUARDED.splitlines(keepends=True), name))
    space: dict[str, Any] = {"__name__": "guarded"}
    exec(compile(GUARDED, name, "exec"), space)
    args = {"x": np.ones(300, np.float32), "out": st.zeros(300, st.f32), "n": 300}
    result = st.launch(space["guarded"], grid=5, block=64, args=args, compiled=True)
    view = result.compiled()
    assert view.memory["global_load_sectors"] == result.counters.total("global_load_sectors") == 38
    assert not view.differences and not view.output_differences


@st.kernel
def doubled(x: st.Global[st.f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    x[i] = x[i] + x[i]


@needs_sass
@pytest.mark.slow
def test_arrays_are_those_before_the_launch() -> None:
    """The kernel changes its argument in device memory, the program changes it after the launch."""
    x = st.DeviceArray(np.arange(64, dtype=np.float32))
    result = st.launch(doubled, grid=2, block=32, args={"x": x}, compiled=True)
    x.replace(np.zeros(64, np.float32))
    assert result.compiled().output_differences == {}


@st.kernel
def claimed(tickets: st.Global[st.i32], out: st.Global[st.i32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = st.atomic_add(tickets, 0, 1)


@needs_sass
@pytest.mark.slow
def test_a_difference_is_explained() -> None:
    args = {"tickets": np.zeros(1, np.int32), "out": st.empty(64, st.i32)}
    result = st.launch(claimed, grid=1, block=64, args=args, compiled=True)
    view = result.compiled()
    assert result.memory is not None
    result.memory.after["out"] = ""  # as of another order
    (reason,) = kernel.executed_binary(
        view.launched, view.launched.binary("sm_90"), "sm_90"
    ).output_differences.values()
    assert reason.startswith("it depends on the order of threads: ")


@st.kernel
def neighbours(sums: st.Global[st.i32], out: st.Global[st.i32]) -> None:
    """Each block shares its number in dynamic shared memory, and reads the next block's after a grid barrier."""
    part = st.dynamic_shared(st.i32)
    t = st.thread.x
    part[t] = st.block.x
    st.sync()
    sums[st.block.x] = part[len(part) - 1 - t]
    st.grid_sync()
    out[st.block.x * st.block_dim.x + t] = sums[(st.block.x + 1) % st.grid_dim.x]


@needs_sass
@pytest.mark.slow
def test_grid_barriers_and_dynamic_shared_arrays_are_executed() -> None:
    args = {"sums": st.empty(4, st.i32), "out": st.empty(4 * 64, st.i32)}
    result = st.launch(neighbours, grid=4, block=64, args=args, shared=4 * 64, cooperative=True, compiled=True)
    view = result.compiled()
    assert view.output_differences == {} and view.memory["barriers"] >= 3 * 4 * 2
    assert view.memory["shared_atomic_wavefronts"] == 4  # a grid barrier's generic atomic, by one warp of a block


@needs_sass
@pytest.mark.slow
def test_blocks_of_large_launches_are_sampled() -> None:
    args = {"x": np.ones(64 * 2048, np.float32)}
    view = st.launch(doubled, grid=2048, block=64, args=args, compiled=True).compiled()
    sampled = kernel.compiled_kernel(view.launched, "sm_90", limit=2000)
    assert view.executed.sampled == 1 and 4 < sampled.executed.sampled < 40
    assert sampled.warp_instructions == pytest.approx(view.warp_instructions, rel=1e-6)
    assert sampled.memory == view.memory


@needs_sass
@pytest.mark.slow
def test_other_architectures_are_refused() -> None:
    result = st.launch(dots, grid=1, block=64, args={"x": np.ones(64, np.float32), "out": st.empty(64, st.f32)},
        device="A100", compiled=True)  # fmt: skip
    with pytest.raises(SimtbedError, match="SASS of sm_80 is not emulated"):
        result.compiled()
