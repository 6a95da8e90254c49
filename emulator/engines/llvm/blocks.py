"""Code generation for blocks: barrier-free statements run warp by warp, statements with a barrier run for all warps together.

At this level a mask is one i32 for each of up to 32 warps, stored as one vector in memory.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import Diagnostic
from ...ir import counting
from ...ir import nodes as ir
from ...ir.effects import COUNTING_BARRIERS
from ...language.intrinsics import WARP_SIZE
from ...language.types import BOOL, I32, I64, Array
from ...llvm.builder import FULL, LANES, many, vector
from ...llvm.values import Value, bits
from ...passes.barriers import holds_barrier
from ...passes.grids import holds_blocks_barrier
from ...profiler import events
from ...runtime.engine import Request
from ...sanitizer import barriers
from ...sanitizer.places import thread_text
from ...sanitizer.schedules import ROWS
from .context import CodegenContext
from .control import StatementEmitter
from .counters import samples
from .fault_records import Number
from .faults import record_missing
from .masks import Scope, Scopes
from .races import tracking
from .segments import Node, assigning, mentioned, segments, tested, written
from .whole_warps import runs_whole_warps

V = many("i32")


@dataclass
class BlockScope:
    """A scope entered by all warps of the block together. arrays: by mask slot of the scope, the array of the masks of all warps."""

    scope: Scope
    arrays: dict[str, str]


class BlockEmitter:
    """Code generator for the blocks of a kernel."""

    def __init__(self, context: CodegenContext) -> None:
        self.context, self.builder = context, context.builder
        self.scopes = Scopes(context)
        self.statements = StatementEmitter(context, self.scopes)
        self.active = self.slot(V, "active.lanes")
        self.alive = self.slot(V, "alive.lanes")
        kernel = Scope("kernel", "%.alive", of_block=True)
        self.block_scopes = [BlockScope(kernel, {"%.alive": self.alive})]
        self.scopes.stack.append(kernel)
        self.whole = runs_whole_warps(self.context)

    # -------------------------------------------------------------- the whole block
    def slot(self, type: str, hint: str) -> str:
        """Allocate memory shared by all warps of the block."""
        frame = self.context.frame
        return self.builder.slot(type, hint) if frame is None else frame.slot(self.builder, type, hint)

    def run(self) -> None:
        """Generate the code of one block."""
        threads = self.context.options.block[0] * self.context.options.block[1] * self.context.options.block[2]
        masks = [
            FULL if threads >= WARP_SIZE * (w + 1) else (1 << max(0, threads - WARP_SIZE * w)) - 1 for w in range(LANES)
        ]
        self.everyone = vector("i32", (m if w < self.context.warps else 0 for w, m in enumerate(masks)))
        for array in (self.active, self.alive):
            self.builder.store(V, self.everyone, array)
        self.builder.store("i32", "0", "%.phase")
        self.spill_registers()
        self.body(self.context.kernel.body)
        if self.context.frame is not None:
            self.context.frame.finish(self.builder, self._any(self.alive))

    def spill_registers(self) -> None:
        """Reserve and clear the workspace of the registers that are live across phases."""
        phases_of: dict[str, int] = {}
        for segment in segments(self.context.kernel.body):
            for name in mentioned(segment):
                if name in self.context.registers.cells:
                    phases_of[name] = phases_of.get(name, 0) + 1
        several = [name for name, count in phases_of.items() if count > 1]
        cells = self.context.registers
        cells.reserve(several, self.context.warps)
        if several:
            arguments = (("ptr", "%.workspace"), ("i8", "0"), ("i64", str(cells.workspace)), ("i1", "false"))
            self.builder.call("void", "llvm.memset.p0.i64", *arguments)
        parameters = [p.name for p in self.context.kernel.params if p.name in several]
        if parameters:
            self.each_warp((), lambda: cells.spill(parameters, self.context.warp), parameters)

    def body(self, stmts: Sequence[ir.Stmt]) -> None:
        """Generate a statement list: phases, and statements with barriers."""
        at = 0
        while at < len(stmts):
            stmt = stmts[at]
            if holds_barrier(stmt):
                self.statements.comment(stmt)
                self.block_wide(stmt)
                at += 1
                continue
            end = next((i for i in range(at, len(stmts)) if holds_barrier(stmts[i])), len(stmts))
            self.phase(stmts[at:end])
            at = end

    def block_wide(self, stmt: ir.Stmt) -> None:
        """Generate a statement executed by all warps together."""
        match stmt:
            case ir.If():
                self.branch(stmt)
            case ir.While() | ir.For():
                self.loop(stmt)
            case ir.Frame():
                self.frame(stmt)
            case ir.Let(value=ir.Barrier() as barrier):
                self.barrier(stmt, barrier)

    # -------------------------------------------------------------- one warp after another
    def phase(self, stmts: Sequence[ir.Stmt]) -> None:
        """Generate statements without a barrier: each warp executes all of them before the next warp starts."""

        def run() -> None:
            self.statements.body(stmts)

        leaves = self.scopes.leaves_divergently(stmts)
        self.each_warp(stmts, run, (), leaves)

    def each_warp(
        self, nodes: Sequence[Node], run: Callable[[], None], fresh: Iterable[str] = (), leaves: bool = False
    ) -> None:
        """Generate a loop over the warps with active lanes. nodes: the IR nodes of the code generated by `run`.

        fresh: registers to initialise. leaves: lanes may leave block-wide scopes in the loop.
        """
        builder, context = self.builder, self.context
        single = context.warps == 1
        head, begin, following, exit_label = (builder.label(h) for h in ("warps", "warp", "warp.next", "warps.done"))
        counter = builder.slot("i32", "warp.number")
        builder.store("i32", "0", counter)
        if single:
            context.warp = "0"
        else:
            builder.jump(head)
            builder.place(head)
            context.warp = number = builder.load("i32", counter, "warp")
            builder.branch(builder.let(f"icmp ult i32 {number}, {context.warps}", "more"), begin, exit_label)
            builder.place(begin)
            if context.options.scheduled:
                context.warp = self._scheduled(number)
        mask = builder.load("i32", builder.element("i32", self.active, context.warp, width="i32"), "active")
        busy = builder.label("busy")
        builder.branch(builder.let(f"icmp eq i32 {mask}, 0", "idle"), following, busy)
        builder.place(busy)
        if not single and tracking.has_tracked_effects(context, nodes):
            tracking.resume(context)
        live_registers = [n for n in mentioned(nodes) if n in context.registers.cells]
        self._load_state(live_registers, fresh)
        self._masked(mask, run, nodes)
        if leaves:
            lanes_inside = builder.load("i32", self.scopes.innermost(), "present")
            left = builder.let(f"and i32 {lanes_inside}, {mask}", "left")
            builder.store("i32", left, builder.element("i32", self.active, context.warp, width="i32"))
            self._copy_masks(out=True)
        changed = written(nodes)
        context.registers.spill([n for n in live_registers if n in changed], context.warp)
        builder.jump(following)
        builder.place(following)
        if single:
            return
        builder.store("i32", builder.let(f"add i32 {number}, 1", "warp"), counter)
        builder.jump(head)
        builder.place(exit_label)

    def _scheduled(self, number: str) -> str:
        """Return the warp at a position of the schedule of the launch."""
        builder = self.builder
        block = builder.let(f"trunc i64 {self.context.block} to i32", "block")
        row = builder.let(f"and i32 {builder.let(f'add i32 {block}, {self.context.phase()}')}, {ROWS - 1}", "row")
        at = builder.let(f"add i32 {builder.let(f'mul i32 {row}, 32')}, {number}", "place")
        return builder.let(
            f"trunc i64 {builder.load('i64', builder.element('i64', '%.order', at, width='i32'))} to i32", "warp"
        )

    def _load_state(self, live_registers: Sequence[str], fresh: Iterable[str]) -> None:
        context, cells = self.context, self.context.registers
        self._copy_masks(out=False)
        spilled = [n for n in live_registers if n in cells.spilled]
        new = [*fresh, *(n for n in live_registers if n not in cells.spilled)]
        cells.clear(new)
        for param in context.kernel.params:
            if param.name in new and not isinstance(param.type, Array):
                cells.assign(param.name, context.parameter(param), None)
        cells.reload(spilled, context.warp)

    def _copy_masks(self, out: bool) -> None:
        """Copy the masks of block-wide scopes from their arrays into the warp's slots, or back."""
        builder = self.builder
        for block_scope in self.block_scopes:
            for slot, array in block_scope.arrays.items():
                at = builder.element("i32", array, self.context.warp, width="i32")
                source, target = (slot, at) if out else (at, slot)
                builder.store("i32", builder.load("i32", source, "mask"), target)

    def _masked(self, mask: str, run: Callable[[], None], nodes: Sequence[Node]) -> None:
        context = self.context
        if self.whole:
            context.mask = None
            run()
            return
        stmts = [n for n in nodes if isinstance(n, ir.Stmt)]
        context.mask = None
        if not stmts:
            context.mask = mask
            run()
            context.mask = None
            return

        def body() -> bool:
            run()
            return True

        self.statements.specialise(mask, stmts, body)

    # -------------------------------------------------------------- branches
    def branch(self, stmt: ir.If) -> None:
        builder, context = self.builder, self.context
        taken, rest, before = (self.slot(V, hint) for hint in ("taken", "rest", "before"))
        for array in (taken, rest):
            builder.store(V, "zeroinitializer", array)

        def test() -> None:
            condition = context.expression(stmt.cond)
            holds = builder.let(f"and i32 {bits(builder, condition)}, {context.active()}", "holds")
            self.statements.count_execution([stmt.site])
            if not condition.uniform:
                self.statements.count_divergence(stmt.site, holds)
            builder.store("i32", holds, builder.element("i32", taken, context.warp, width="i32"))
            complement = builder.let(f"xor i32 {holds}, {context.active()}", "others")
            builder.store("i32", complement, builder.element("i32", rest, context.warp, width="i32"))

        self.each_warp([stmt.cond], test)
        self._copy(self.active, before)
        for masks, arm in ((taken, stmt.then), (rest, stmt.orelse)):
            if arm:
                with builder.when(self._any(masks), "block.then"):
                    self._copy(masks, self.active)
                    self.body(arm)
        self._restore_active(before, self.block_scopes)

    def _copy(self, source: str, target: str) -> None:
        self.builder.store(V, self.builder.load(V, source, "masks"), target)

    def _any(self, array: str) -> str:
        """Return an i1: any mask is not empty."""
        masks = self.builder.load(V, array, "masks")
        all_of = self.builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, masks), hint="some")
        return self.builder.let(f"icmp ne i32 {all_of}, 0", "any")

    def _restore_active(self, before: str, block_scopes: Sequence[BlockScope]) -> None:
        """Restore the active lanes after a statement: those before it without the lanes that left an enclosing scope."""
        builder = self.builder
        innermost = next(w for w in reversed(block_scopes) if w.scope.present is not None)
        assert innermost.scope.present is not None
        lanes_inside = builder.load(V, innermost.arrays[innermost.scope.present], "present")
        builder.store(
            V, builder.let(f"and {V} {lanes_inside}, {builder.load(V, before, 'before')}", "active"), self.active
        )

    # -------------------------------------------------------------- loops and frames
    def loop(self, stmt: ir.While | ir.For) -> None:
        builder = self.builder
        scope = Scope("loop", builder.slot("i32", "in.iteration"), builder.slot("i32", "in.loop"), of_block=True)
        assert scope.present is not None and scope.looping is not None
        block_scope = BlockScope(
            scope, {scope.present: self.slot(V, "in.iteration"), scope.looping: self.slot(V, "in.loop")}
        )
        before, iterations = self.slot(V, "before"), self.slot("i64", "iterations")
        self._copy(self.active, before)
        builder.store("i64", "0", iterations)
        variable: list[Node] = [stmt.var] if isinstance(stmt, ir.For) else []
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), stmt.start], lambda: self.statements.begin(stmt))
        self._copy(self.active, block_scope.arrays[scope.looping])
        self._copy(self.active, block_scope.arrays[scope.present])
        self.scopes.stack.append(scope)
        self.block_scopes.append(block_scope)
        head, begin, exit_label = (builder.label(hint) for hint in ("block.loop", "block.iteration", "block.loop.done"))
        builder.jump(head)
        builder.place(head)
        if isinstance(stmt, ir.While):
            self.body(stmt.setup)
        self.each_warp(
            [*variable, *([stmt.cond] if isinstance(stmt, ir.While) else tested(stmt))], lambda: self._test(stmt)
        )
        builder.branch(self._any(self.active), begin, exit_label)
        builder.place(begin)
        for slot in (scope.present, scope.looping):
            self._copy(self.active, block_scope.arrays[slot])
        self._check_step_limit(stmt, iterations, exit_label)
        self.body(stmt.body)
        self._copy(block_scope.arrays[scope.looping], self.active)
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), counting.moved(stmt)], lambda: self.statements.advance(stmt))
        builder.jump(head)
        builder.place(exit_label)
        self.scopes.stack.pop()
        self.block_scopes.pop()
        self._restore_active(before, self.block_scopes)

    def _test(self, stmt: ir.While | ir.For) -> None:
        builder, context = self.builder, self.context
        # The code of a while loop's setup is already generated.
        condition = context.expression(stmt.cond) if isinstance(stmt, ir.While) else self.statements.test(stmt)
        holds = builder.let(f"and i32 {bits(builder, condition)}, {context.active()}", "holds")
        self.statements.count_execution([stmt.site])
        if not condition.uniform:
            self.statements.count_divergence(stmt.site, holds)
        builder.store("i32", holds, builder.element("i32", self.active, context.warp, width="i32"))

    def _check_step_limit(self, stmt: ir.While | ir.For, iterations: str, exit_label: str) -> None:
        builder = self.builder
        completed, proceed = self.statements.begin_iteration(stmt, iterations)
        if self.context.options.step_limited:

            def end() -> None:
                self.statements.report_step_limit(stmt)
                self.scopes.kill()

            self.each_warp([], end, (), leaves=True)
            builder.jump(exit_label)
        else:
            builder.do("ret i32 1")
        builder.place(proceed)
        builder.store("i64", builder.let(f"add i64 {completed}, 1", "iterations"), iterations)
        if self.context.options.detail:
            starting = builder.load(V, self.active, "started")
            samples.count_iteration_of_block(self.context, stmt.site, completed, starting)

    def frame(self, stmt: ir.Frame) -> None:
        builder = self.builder
        scope = Scope("frame", builder.slot("i32", "in.call"), of_block=True)
        assert scope.present is not None
        block_scope = BlockScope(scope, {scope.present: self.slot(V, "in.call")})
        before = self.slot(V, "before")
        self._copy(self.active, before)
        self._copy(self.active, block_scope.arrays[scope.present])
        self.scopes.stack.append(scope)
        self.block_scopes.append(block_scope)
        self.body(stmt.body)
        self.scopes.stack.pop()
        self.block_scopes.pop()
        self._restore_active(before, self.block_scopes)

    # -------------------------------------------------------------- barriers
    def barrier(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """Generate a barrier, and its fault for threads of the block that do not reach it. Without a thread at the barrier,
        as after `continue`, it has no effect."""
        passed = self.builder.label("passed")
        self._check_all_arrive(stmt, node, passed)
        if barriers.requires_every_thread(self.context.options.checks, self.context.options.device):
            self._check_none_returned(stmt, node)
        of_blocks = holds_blocks_barrier(stmt)
        if node.mode in COUNTING_BARRIERS:
            self._reduce_predicates(stmt, node)
        self._count(stmt.site)
        if not of_blocks:  # the engine does this after the other blocks have arrived
            tracking.notify(self.context, "barrier")
        phase = self.builder.load("i32", "%.phase", "phase")
        self.builder.store("i32", self.builder.let(f"add i32 {phase}, 1", "phase"), "%.phase")
        if of_blocks:
            assert self.context.frame is not None
            self.context.frame.leave(self.builder, self._any(self.active))
        self.builder.jump(passed)
        self.builder.place(passed)

    def _check_all_arrive(self, stmt: ir.Let, node: ir.Barrier, passed: str) -> None:
        """Check that every thread that has not returned is at the barrier. Jump to `passed` if no thread is."""

        def describe(place: str, request: Request, values: Sequence[Number]) -> Diagnostic:
            lanes_inside, missing, absent, linear = (int(n) for n in values)
            away = thread_text(linear, absent, request.grid, request.block, 0)
            return barriers.divergent(node.span, place, lanes_inside, missing, away)

        builder = self.builder
        active, alive = builder.load(V, self.active, "active"), builder.load(V, self.alive, "alive")
        away = builder.let(f"and {V} {alive}, {builder.let(f'xor {V} {active}, splat (i32 -1)', 'others')}", "absent")
        missing = builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, away), hint="missing")
        split_label, joined_label, some_label = (builder.label(hint) for hint in ("absent", "joined", "any.present"))
        builder.branch(builder.let(f"icmp eq i32 {missing}, 0", "all"), joined_label, split_label, rarely=True)
        builder.place(split_label)
        builder.branch(self._any(self.active), some_label, passed)
        builder.place(some_label)
        record = self.context.records.record("barrier", stmt.site, [I64, I64, I64, I64], describe)
        record_missing(self.context, record, self.active, self.alive)
        builder.jump(joined_label)
        builder.place(joined_label)

    def _check_none_returned(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """Check that no thread of the block has returned."""

        def describe(place: str, request: Request, values: Sequence[Number]) -> Diagnostic:
            lanes_inside, returned, first, linear = (int(n) for n in values)
            away = thread_text(linear, first, request.grid, request.block, 0)
            return barriers.returned(node.span, place, lanes_inside, returned, away)

        builder = self.builder
        alive = builder.load(V, self.alive, "alive")
        returned = builder.let(f"xor {V} {alive}, {self.everyone}", "returned")
        some = builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, returned), hint="returned")
        with builder.when_any(some, "left", rarely=True):
            concerned = self.slot(V, "returned")
            builder.store(
                V, builder.let(f"or {V} {returned}, {builder.load(V, self.active, 'active')}", "selected"), concerned
            )
            record = self.context.records.record("returned", stmt.site, [I64, I64, I64, I64], describe)
            record_missing(self.context, record, self.active, concerned)

    def _reduce_predicates(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """Compute the result of a counting barrier: the combined predicates of all threads, equal for all of them."""
        builder, context = self.builder, self.context
        total, yes = builder.slot("i32", "arrived"), builder.slot("i32", "votes")
        for slot in (total, yes):
            builder.store("i32", "0", slot)

        def evaluate() -> None:
            holds = builder.let(f"and i32 {bits(builder, context.expression(node.value))}, {context.active()}", "holds")
            for slot, mask in ((total, context.active()), (yes, holds)):
                count = builder.call("i32", "llvm.ctpop.i32", ("i32", mask), hint="count")
                builder.store("i32", builder.let(f"add i32 {builder.load('i32', slot)}, {count}", "sum"), slot)

        self.each_warp([node.value], evaluate)
        if not isinstance(stmt.target, ir.Reg):
            return
        target = stmt.target
        count, arrived = builder.load("i32", yes, "count"), builder.load("i32", total, "arrived")
        match node.mode:
            case "count":
                result = Value(I32, count)
            case "and":
                result = Value(BOOL, builder.let(f"icmp eq i32 {count}, {arrived}", "unanimous"))
            case _:
                result = Value(BOOL, builder.let(f"icmp ne i32 {count}, 0", "any.lane"))
        complete = stmt.site in context.divergence.complete
        self.each_warp(
            [ir.Let(target, ir.Const(0, I32, stmt.span), stmt.span)],
            lambda: context.registers.assign(target.name, result, None if complete else context.mask),
        )

    def _count(self, site: int) -> None:
        builder, context = self.builder, self.context
        if not context.options.counters:
            return
        masks = builder.load(V, self.active, "active")
        lanes_inside = builder.let(f"icmp ne {V} {masks}, zeroinitializer", "present")
        warps = context.population(builder.let(f"bitcast {many('i1')} {lanes_inside} to i32", "present"), "warps")
        if self.whole:
            context.count(context.counter_slots.whole_warps([site]), warps)
            return
        populations = builder.intrinsic("llvm.ctpop", V, masks, hint="lanes")
        lanes = builder.call("i32", "llvm.vector.reduce.add.v32i32", (V, populations), hint="lanes")
        for column, amount in ((events.WARPS, warps), (events.LANES, builder.let(f"zext i32 {lanes} to i64", "lanes"))):
            context.count(context.counter_slots.counter(site, column), amount)
