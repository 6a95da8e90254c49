"""A kernel as an LLVM module: one function that runs a range of .blocks, and the functions it calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir import nodes as ir
from ...ir.walk import statements
from ...language.types import BOOL, Array, Scalar
from ...passes.divergence import analyse_divergence
from ...passes.prepared import Prepared
from ...sanitizer.schedules import ROWS
from ...sanitizer.tracking import Plan
from .blocks import Block
from .builder import Page, quoted, scalar_type
from .context import Build, Options, Outside
from .counters.slots import Numbers
from .fault_records import NOTE_BARRIER, NOTE_DECLARED, NOTE_FAULT, Records
from .races import tracking
from .registers import Registers

ENTRY = "run_blocks"
"""The function's name: (arrays and lengths, scalars, first and last block, grid, step limit, buffers, callback) -> i32.
It returns 1 where a loop was cut off and careful text is needed."""

_FIXED = (
    "i64 %.first", "i64 %.last", "i32 %grid_dim.x", "i32 %grid_dim.y", "i32 %grid_dim.z", "i64 %.limit",
    "ptr noalias %.counts", "ptr noalias %.faults", "ptr noalias %.shared", "ptr noalias %.local",
    "ptr noalias %.workspace", "ptr %.shadow", "ptr %.order", "ptr %.ask",
)  # fmt: skip

_ATTRIBUTES = """attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind noinline "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #2 = { nounwind noinline cold "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!0 = !{!"branch_weights", i32 2000, i32 1}"""


@dataclass(frozen=True)
class Buffers:
    """What a launch of compiled code gives each thread, and how counts are read from it.

    counts: int64 slots. records: int64 of faults. shared, local, workspace: bytes. table: as `counting.decode` has it.
    """

    counts: int
    records: int
    shared: int
    local: int
    workspace: int
    table: Numbers

    def encode(self) -> bytes:
        sizes = (self.counts, self.records, self.shared, self.local, self.workspace)
        return np.array(sizes, np.int64).tobytes() + self.table.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        numbers = np.frombuffer(data, np.int64)
        counts, records, shared, local, workspace = numbers[:5].tolist()
        return Buffers(counts, records, shared, local, workspace, numbers[5:].reshape(-1, 4))


@dataclass(frozen=True)
class Module:
    """The text, its buffers, and what its faults and its questions to Python mean."""

    text: str
    buffers: Buffers
    records: Records
    outside: Outside


def kernel_module(prepared: Prepared, options: Options) -> Module:
    """Print a kernel."""
    kernel = prepared.program.kernel
    page = Page()
    page.reserve(".block", ".phase", ".alive", *(p.rsplit("%", 1)[1] for p in _FIXED))
    page.reserve(*(f"{group}.{axis}" for group in ("block", "grid_dim") for axis in "xyz"))
    page.reserve(*(quoted(p.name) + end for p in kernel.params for end in ("", ".length", ".limit", ".reach", ".byte")))
    page.reserve(*(quoted(s.array) for s in _allocations(kernel)))
    page.slots += ["  %.phase = alloca i32", "  %.alive = alloca i32"]
    found = analyse_divergence(kernel, prepared.private, options.block)
    plan = Plan.of(kernel, options.checks, options.unwritten)
    build = Build(prepared, options, found, page, Registers.of(page, kernel, found), plan)
    page.reserve(*tracking.names(build))
    build.lay_out(kernel.params)
    _entry(build)
    Block(build).run()
    page.do("%.block.after = add i64 %.block.turn, 1")
    page.do("store i64 %.block.after, ptr %.block.number")
    page.jump(".blocks")
    page.place(".blocks.done")
    page.do("ret i32 0")
    buffers = Buffers(
        len(build.tally.slots),
        build.records.size,
        build.shared_bytes,
        build.local_bytes,
        build.registers.workspace,
        build.tally.table(),
    )
    return Module(_text(build), buffers, build.records, build.outside)


def _allocations(kernel: ir.Function) -> list[ir.Alloc]:
    return [s for s in statements(kernel.body) if isinstance(s, ir.Alloc)]


def _entry(build: Build) -> None:
    """Up to the first statement of a block."""
    page = build.page
    page.reserve(
        ".blocks", ".blocks.begin", ".blocks.done", ".blocks.more", ".block.number", ".block.turn", ".block.after"
    )
    for param in build.kernel.params:
        name = quoted(param.name)
        if isinstance(param.type, Array):
            # Lengths as unsigned numbers for 32-bit indices, which never reach 2 ** 31.
            page.declared.add("declare i64 @llvm.umin.i64(i64, i64)")
            page.do(f"%{name}.reach = call i64 @llvm.umin.i64(i64 %{name}.length, i64 {1 << 31})")
            page.do(f"%{name}.limit = trunc i64 %{name}.reach to i32")
        elif param.type is BOOL:
            page.do(f"%{name} = icmp ne i8 %{name}.byte, 0")
    if build.plan.tracked:
        tracking.enter(build)
    page.slots.append("  %.block.number = alloca i64")
    page.do("store i64 %.first, ptr %.block.number")
    page.jump(".blocks")
    page.place(".blocks")
    page.do("%.block.turn = load i64, ptr %.block.number")
    page.do("%.blocks.more = icmp slt i64 %.block.turn, %.last")
    page.branch("%.blocks.more", ".blocks.begin", ".blocks.done")
    page.place(".blocks.begin")
    if build.options.scheduled:
        after = page.element("i64", "%.order", 32 * ROWS, "blocks")
        page.do(f"%.block = load i64, ptr {page.element('i64', after, '%.block.turn')}")
    else:
        page.do("%.block = add i64 %.block.turn, 0")
    rest = "%.block"
    for axis in "xyz":
        extent = page.let(f"zext i32 %grid_dim.{axis} to i64", "extent")
        page.do(f"%block.{axis} = trunc i64 {page.let(f'urem i64 {rest}, {extent}', 'index')} to i32")
        rest = page.let(f"udiv i64 {rest}, {extent}", "rest")
    tracking.happens(build, "begin_block", ("i64", "%.block"))
    for buffer, size in (("%.shared", build.shared_bytes), ("%.local", build.local_bytes)):
        if size:
            page.call("void", "llvm.memset.p0.i64", ("ptr", buffer), ("i8", "0"), ("i64", str(size)), ("i1", "false"))


def _text(build: Build) -> str:
    page = build.page
    params = []
    for param in build.kernel.params:
        name = quoted(param.name)
        if isinstance(param.type, Array):
            params += [f"ptr noalias %{name}", f"i64 %{name}.length"]
        else:
            assert isinstance(param.type, Scalar)
            params.append(f"i8 %{name}.byte" if param.type is BOOL else f"{scalar_type(param.type)} %{name}")
    page.declared.update(NOTE_DECLARED)
    parts = [
        f"; {build.kernel.name}; blocks of {build.options.block}",
        *(f"{name} = {text}" for name, text in build.tables.items()),
        f"define i32 @{ENTRY}({', '.join([*params, *_FIXED])}) #0 {{\n.entry:",
        *page.slots,
        *page.lines,
        "}",
        *build.rules.values(),
        NOTE_FAULT,
        NOTE_BARRIER,
        *sorted(page.declared),
        _ATTRIBUTES,
    ]
    return "\n".join(parts) + "\n"
