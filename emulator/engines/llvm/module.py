"""LLVM module of a kernel: one function that runs a range of blocks, and its helper functions."""

from dataclasses import dataclass

from ...ir import nodes as ir
from ...ir.effects import accesses
from ...ir.walk import statements
from ...ir.wide import width
from ...language.types import BOOL, Array, Scalar
from ...llvm.builder import FunctionBuilder, quoted, scalar_type
from ...llvm.compiler import ModuleText
from ...passes.divergence import analyse_divergence
from ...passes.grids import has_clusters, is_cooperative
from ...runtime.prepared import PreparedProgram
from ...sanitizer.schedules import ROWS
from ...sanitizer.tracking import Plan
from . import faults
from .block_frames import OWN, TABLE, Frame
from .blocks import BlockEmitter
from .context import CodegenContext, HostCalls
from .fault_records import FaultRecords
from .layout import ARGUMENTS, ENTRY, Buffers, Options
from .races import tracking
from .registers import Registers

_ATTRIBUTES = """attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind noinline "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #2 = { nounwind noinline cold "prefer-vector-width"="512" "min-legal-vector-width"="512" }
!0 = !{!"branch_weights", i32 2000, i32 1}"""

SPECIALISE_DEPTH = 3
"""Maximum nesting of regions of optimised code with two versions."""


@dataclass(frozen=True)
class Module:
    """The text of a module, its buffers, and the meaning of its fault records and host calls."""

    text: ModuleText
    buffers: Buffers
    records: FaultRecords
    host_calls: HostCalls


def kernel_module(prepared: PreparedProgram, options: Options, optimised: bool) -> Module:
    """Generate the code of a kernel. Only optimised code has versions for full warps: they double the text."""
    kernel = prepared.program.kernel
    builder = FunctionBuilder()
    builder.reserve(".block", ".phase", ".alive", *(argument.name for argument in ARGUMENTS))
    builder.reserve(*(f"{group}.{axis}" for group in ("block", "grid_dim") for axis in "xyz"))
    builder.reserve(
        *(quoted(p.name) + end for p in kernel.params for end in ("", ".length", ".limit", ".reach", ".byte"))
    )
    builder.reserve(*(quoted(s.array) for s in _allocations(kernel)))
    builder.reserve(*(name + end for name, _, _ in _wide_views(kernel) for end in ("", ".length", ".limit", ".reach")))
    builder.slots.append("  %.alive = alloca i32")
    divergence_of = analyse_divergence(kernel, prepared.private, options.block)
    plan = Plan.for_kernel(kernel, options.checks, options.unwritten, options.overlap)
    depth = SPECIALISE_DEPTH if optimised else 0
    context = CodegenContext(
        prepared, options, divergence_of, builder, Registers.for_kernel(builder, kernel, divergence_of), plan, depth
    )
    builder.reserve(*tracking.table_names(context))
    if is_cooperative(kernel) or has_clusters(kernel):
        context.frame = Frame("%.block.place" if has_clusters(kernel) else "%.block")
        builder.reserve(
            *(f".{name}{end}" for name in OWN for end in ("", "s")), ".blocks.next", ".block.start", ".resume"
        )
    else:
        builder.slots.append("  %.phase = alloca i32")
        context.place_arrays(kernel.params)
    _entry(context)
    BlockEmitter(context).run()
    builder.do("%.block.after = add i64 %.block.place, 1")
    builder.do("store i64 %.block.after, ptr %.block.number")
    builder.jump(".blocks")
    builder.place(".blocks.done")
    builder.do("ret i32 0")
    buffers = Buffers.with_sizes(
        context.counter_slots.table(),
        sites=len(prepared.sites),
        samples=context.sample_slots,
        calls=any("%.host_call" in line for line in builder.lines),
        counts=len(context.counter_slots.slots),
        faults=context.records.size,
        shared=context.shared_bytes,
        local=context.local_bytes,
        workspace=context.registers.workspace,
        frame=0 if context.frame is None else context.frame.size,
    )
    return Module(_text(context), buffers, context.records, context.host_calls)


def _allocations(kernel: ir.Function) -> list[ir.Alloc]:
    return [s for s in statements(kernel.body) if isinstance(s, ir.Alloc)]


def _entry(context: CodegenContext) -> None:
    """Generate the code before the first statement of a block."""
    builder = context.builder
    builder.reserve(
        ".blocks", ".blocks.begin", ".blocks.done", ".blocks.more", ".block.number", ".block.place", ".block.after"
    )
    for param in context.kernel.params:
        name = quoted(param.name)
        if isinstance(param.type, Array):
            _limits(builder, name)
        elif param.type is BOOL:
            builder.do(f"%{name} = icmp ne i8 %{name}.byte, 0")
    for name, array, ratio in _wide_views(context.kernel):
        builder.do(f"%{name} = getelementptr i8, ptr %{array}, i64 0")
        builder.do(f"%{name}.length = lshr i64 %{array}.length, {ratio.bit_length() - 1}")
        _limits(builder, name)
    if context.plan.tracked:
        tracking.load_table(context)
    builder.slots.append("  %.block.number = alloca i64")
    builder.do("store i64 %.first, ptr %.block.number")
    builder.jump(".blocks")
    builder.place(".blocks")
    builder.do("%.block.place = load i64, ptr %.block.number")
    builder.do("%.blocks.more = icmp slt i64 %.block.place, %.last")
    builder.branch("%.blocks.more", ".blocks.begin", ".blocks.done")
    builder.place(".blocks.begin")
    if context.options.scheduled or context.options.cluster != (1, 1, 1):
        after = builder.element("i64", "%.order", 32 * ROWS, "blocks")
        builder.do(f"%.block = load i64, ptr {builder.element('i64', after, '%.block.place')}")
    else:
        builder.do("%.block = add i64 %.block.place, 0")
    rest = "%.block"
    for axis in "xyz":
        extent = builder.let(f"zext i32 %grid_dim.{axis} to i64", "extent")
        builder.do(f"%block.{axis} = trunc i64 {builder.let(f'urem i64 {rest}, {extent}', 'index')} to i32")
        rest = builder.let(f"udiv i64 {rest}, {extent}", "rest")
    if context.frame is not None:
        context.frame.enter(builder)
        context.place_arrays(context.kernel.params)
        context.frame.resume(builder)
    else:  # else in the engine
        tracking.notify(context, "begin_block", ("i64", "%.block"))
    for buffer, size in (("%.shared", context.shared_bytes), ("%.local", context.local_bytes)):
        if size:
            builder.call(
                "void", "llvm.memset.p0.i64", ("ptr", buffer), ("i8", "0"), ("i64", str(size)), ("i1", "false")
            )


def _limits(builder: FunctionBuilder, name: str) -> None:
    """Define the length of an array as unsigned numbers for 32-bit indices, which are always below 2 ** 31."""
    builder.declared.add("declare i64 @llvm.umin.i64(i64, i64)")
    builder.do(f"%{name}.reach = call i64 @llvm.umin.i64(i64 %{name}.length, i64 {1 << 31})")
    builder.do(f"%{name}.limit = trunc i64 %{name}.reach to i32")


def _wide_views(kernel: ir.Function) -> list[tuple[str, str, int]]:
    """Return the global arrays in units of wider accesses: name of the view, of the array, elements of an access."""
    types = {param.name: param.type for param in kernel.params if isinstance(param.type, Array)}
    ratios = {(a.array, width(a, types[a.array])) for _, a in accesses(kernel) if a.array in types}
    return [(f"{quoted(name)}.by{ratio}", quoted(name), ratio) for name, ratio in sorted(ratios) if ratio > 1]


def _text(context: CodegenContext) -> ModuleText:
    builder = context.builder
    params = []
    for param in context.kernel.params:
        name = quoted(param.name)
        if isinstance(param.type, Array):
            params += [f"ptr{' noalias' * (not context.options.overlapping)} %{name}", f"i64 %{name}.length"]
        else:
            assert isinstance(param.type, Scalar)
            params.append(f"i8 %{name}.byte" if param.type is BOOL else f"{scalar_type(param.type)} %{name}")
    arguments, lines = [argument.text for argument in ARGUMENTS], builder.lines
    if context.frame is not None:
        sizes = (context.shared_bytes, context.local_bytes, context.registers.workspace, context.frame.size)
        context.tables[TABLE] = f"internal constant [4 x i64] [{', '.join(f'i64 {size}' for size in sizes)}]"
        arguments = [f"{text}s" if text.rpartition("%.")[2] in OWN else text for text in arguments]
        lines = context.frame.filled_in(lines)
    own = [
        f"; {context.kernel.name}; blocks of {context.options.block}",
        *(f"{name} = {text}" for name, text in context.tables.items()),
        f"define i32 @{ENTRY}({', '.join([*params, *arguments])}) #0 {{\n.entry:",
        *builder.slots,
        *lines,
        "}",
    ]
    helpers = context.helpers | faults.functions(builder.declared)
    return ModuleText("\n".join(own), helpers, sorted(builder.declared), _ATTRIBUTES)
