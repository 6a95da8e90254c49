"""A block: what stands between barriers runs warp by warp, what holds a barrier is walked by all warps together.

At this level a mask is one i32 for each of up to 32 warps, kept in memory and handled as one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...language.types import BOOL, I32, I64, Array
from ...llvm.builder import FULL, LANES, many, vector
from ...llvm.values import Value, bits
from ...passes.barriers import holds_barrier
from ...profiler import events
from ...runtime.engine import Request
from ...sanitizer import barriers
from ...sanitizer.places import where
from ...sanitizer.schedules import ROWS
from .context import CodegenContext
from .control import StatementEmitter
from .fault_records import Number
from .faults import record_missing
from .masks import Scope, Scopes
from .races import tracking
from .segments import STATEMENTS, Node, assigning, mentioned, segments, written

V = many("i32")


@dataclass
class BlockScope:
    """A scope of the whole block: for each of its slots, the array that holds it for all warps."""

    scope: Scope
    arrays: dict[str, str]


class BlockEmitter:
    """Prints the blocks of a kernel."""

    def __init__(self, context: CodegenContext) -> None:
        self.context, self.builder = context, context.builder
        self.scopes = Scopes(context)
        self.statements = StatementEmitter(context, self.scopes)
        self.active = self.builder.slot(V, "active.lanes")
        self.alive = self.builder.slot(V, "alive.lanes")
        kernel = Scope("kernel", "%.alive", of_block=True)
        self.block_scopes = [BlockScope(kernel, {"%.alive": self.alive})]
        self.scopes.stack.append(kernel)
        self.whole = self._whole_warps()

    def _whole_warps(self) -> bool:
        """Whether, between barriers, each warp is there as a whole or not at all."""
        x, y, z = self.context.options.block
        return (
            x * y * z % LANES == 0 and not self.context.options.careful and not self._ragged(self.context.kernel.body)
        )

    def _ragged(self, stmts: ir.Body) -> bool:
        """Whether walked statements may tear warps apart."""
        for stmt in stmts:
            if not holds_barrier(stmt):
                if self._tears(stmt, False, False):
                    return True
                continue
            match stmt:
                case ir.If():
                    torn = (
                        self.context.shapes.of(stmt.cond) != 0 or self._ragged(stmt.then) or self._ragged(stmt.orelse)
                    )
                case ir.While():
                    torn = stmt.site in self.context.shapes.split or self._ragged(stmt.setup) or self._ragged(stmt.body)
                case ir.For():
                    torn = stmt.site in self.context.shapes.split or self._ragged(stmt.body)
                case ir.Frame():
                    torn = self._ragged(stmt.body)
                case _:
                    torn = False
            if torn:
                return True
        return False

    def _tears(self, stmt: ir.Stmt, in_loop: bool, in_frame: bool) -> bool:
        """Whether some lanes of a warp leave a walked scope without the others."""
        match stmt:
            case ir.Break() | ir.Continue():
                return not in_loop and stmt.site not in self.context.shapes.together
            case ir.Return():
                return not in_frame and stmt.site not in self.context.shapes.together
            case ir.While():
                return any(self._tears(s, True, in_frame) for s in (*stmt.setup, *stmt.body))
            case ir.For():
                return any(self._tears(s, True, in_frame) for s in stmt.body)
            case ir.Frame():
                return any(self._tears(s, True, True) for s in stmt.body)
            case ir.If():
                return any(self._tears(s, in_loop, in_frame) for s in (*stmt.then, *stmt.orelse))
        return False

    # -------------------------------------------------------------- the whole
    def run(self) -> None:
        """Print one block."""
        threads = self.context.options.block[0] * self.context.options.block[1] * self.context.options.block[2]
        masks = [FULL if threads >= 32 * (w + 1) else (1 << max(0, threads - 32 * w)) - 1 for w in range(LANES)]
        self.everyone = vector("i32", (m if w < self.context.warps else 0 for w, m in enumerate(masks)))
        for array in (self.active, self.alive):
            self.builder.store(V, self.everyone, array)
        self.builder.store("i32", "0", "%.phase")
        self.keep()
        self.walk(self.context.kernel.body)

    def keep(self) -> None:
        """Registers that more than one phase mentions live in the workspace between them."""
        seen: dict[str, int] = {}
        for segment in segments(self.context.kernel.body):
            for name in mentioned(segment):
                if name in self.context.registers.cells:
                    seen[name] = seen.get(name, 0) + 1
        several = [name for name, count in seen.items() if count > 1]
        cells = self.context.registers
        cells.keep(several, self.context.warps)
        if several:
            arguments = (("ptr", "%.workspace"), ("i8", "0"), ("i64", str(cells.workspace)), ("i1", "false"))
            self.builder.call("void", "llvm.memset.p0.i64", *arguments)
        given = [p.name for p in self.context.kernel.params if p.name in several]
        if given:
            self.each_warp((), lambda: cells.save(given, self.context.warp), given)

    def walk(self, stmts: Sequence[ir.Stmt]) -> None:
        """Print a statement list: phases, and what stands between them."""
        at = 0
        while at < len(stmts):
            stmt = stmts[at]
            if holds_barrier(stmt):
                self.statements.comment(stmt)
                self.together(stmt)
                at += 1
                continue
            end = next((i for i in range(at, len(stmts)) if holds_barrier(stmts[i])), len(stmts))
            self.phase(stmts[at:end])
            at = end

    def together(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.If():
                self.branch(stmt)
            case ir.While() | ir.For():
                self.loop(stmt)
            case ir.Frame():
                self.frame(stmt)
            case ir.Let(value=ir.Barrier() as barrier):
                self.barrier(stmt, barrier)

    # -------------------------------------------------------------- warps in turn
    def phase(self, stmts: Sequence[ir.Stmt]) -> None:
        """Each warp runs the statements to their end."""

        def run() -> None:
            self.statements.body(stmts)

        leaves = self.scopes.leaves_divergently(stmts)
        self.each_warp(stmts, run, (), leaves)

    def each_warp(
        self, nodes: Sequence[Node], run: Callable[[], None], fresh: Iterable[str] = (), leaves: bool = False
    ) -> None:
        """Run something for every warp that has active lanes. `fresh`: registers to begin with their first values.

        leaves: lanes may leave scopes of the block meanwhile.
        """
        builder, context = self.builder, self.context
        single = context.warps == 1
        head, turn, following, done = (builder.label(h) for h in ("warps", "warp", "warp.next", "warps.done"))
        counter = builder.slot("i32", "warp.number")
        builder.store("i32", "0", counter)
        if single:
            context.warp = "0"
        else:
            builder.jump(head)
            builder.place(head)
            context.warp = number = builder.load("i32", counter, "warp")
            builder.branch(builder.let(f"icmp ult i32 {number}, {context.warps}", "more"), turn, done)
            builder.place(turn)
            if context.options.scheduled:
                context.warp = self._scheduled(number)
        mask = builder.load("i32", builder.element("i32", self.active, context.warp, width="i32"), "active")
        busy = builder.label("busy")
        builder.branch(builder.let(f"icmp eq i32 {mask}, 0", "idle"), following, busy)
        builder.place(busy)
        if not single and tracking.has_tracked_effects(context, nodes):
            tracking.resume(context)
        known = [n for n in mentioned(nodes) if n in context.registers.cells]
        self._enter(known, fresh)
        self._run(mask, run, nodes)
        if leaves:
            here = builder.load("i32", self.scopes.innermost(), "here")
            left = builder.let(f"and i32 {here}, {mask}", "left")
            builder.store("i32", left, builder.element("i32", self.active, context.warp, width="i32"))
            self._move(out=True)
        changed = written(nodes)
        context.registers.save([n for n in known if n in changed], context.warp)
        builder.jump(following)
        builder.place(following)
        if single:
            return
        builder.store("i32", builder.let(f"add i32 {number}, 1", "warp"), counter)
        builder.jump(head)
        builder.place(done)

    def _scheduled(self, number: str) -> str:
        """The warp whose turn it is in the order given at launch."""
        builder = self.builder
        block = builder.let(f"trunc i64 {self.context.block} to i32", "block")
        row = builder.let(f"and i32 {builder.let(f'add i32 {block}, {self.context.phase()}')}, {ROWS - 1}", "row")
        at = builder.let(f"add i32 {builder.let(f'mul i32 {row}, 32')}, {number}", "turn")
        return builder.let(
            f"trunc i64 {builder.load('i64', builder.element('i64', '%.order', at, width='i32'))} to i32", "warp"
        )

    def _enter(self, known: Sequence[str], fresh: Iterable[str]) -> None:
        context, cells = self.context, self.context.registers
        self._move(out=False)
        kept = [n for n in known if n in cells.kept]
        new = [*fresh, *(n for n in known if n not in cells.kept)]
        cells.clear(new)
        for param in context.kernel.params:
            if param.name in new and not isinstance(param.type, Array):
                cells.assign(param.name, context.parameter(param), None)
        cells.restore(kept, context.warp)

    def _move(self, out: bool) -> None:
        """The masks of the block's scopes, from their arrays into the warp's slots, or back."""
        builder = self.builder
        for block_scope in self.block_scopes:
            for slot, array in block_scope.arrays.items():
                at = builder.element("i32", array, self.context.warp, width="i32")
                source, target = (slot, at) if out else (at, slot)
                builder.store("i32", builder.load("i32", source, "mask"), target)

    def _run(self, mask: str, run: Callable[[], None], nodes: Sequence[Node]) -> None:
        context = self.context
        if self.whole:
            context.mask = None
            run()
            return
        stmts = [n for n in nodes if isinstance(n, STATEMENTS)]
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
        taken, rest, before = (builder.slot(V, hint) for hint in ("taken", "rest", "before"))
        for array in (taken, rest):
            builder.store(V, "zeroinitializer", array)

        def test() -> None:
            condition = context.expression(stmt.cond)
            holds = builder.let(f"and i32 {bits(builder, condition)}, {context.active()}", "holds")
            self.statements.count_execution([stmt.site])
            if not condition.uniform:
                self.statements.count_divergence(stmt.site, holds)
            builder.store("i32", holds, builder.element("i32", taken, context.warp, width="i32"))
            others = builder.let(f"xor i32 {holds}, {context.active()}", "others")
            builder.store("i32", others, builder.element("i32", rest, context.warp, width="i32"))

        self.each_warp([stmt.cond], test)
        self._copy(self.active, before)
        for masks, arm in ((taken, stmt.then), (rest, stmt.orelse)):
            if arm:
                then, done = builder.label("block.then"), builder.label("block.endif")
                builder.branch(self._any(masks), then, done)
                builder.place(then)
                self._copy(masks, self.active)
                self.walk(arm)
                builder.jump(done)
                builder.place(done)
        self._settle(before, self.block_scopes)

    def _copy(self, source: str, target: str) -> None:
        self.builder.store(V, self.builder.load(V, source, "masks"), target)

    def _any(self, array: str) -> str:
        """An i1: some warp has a lane in the masks."""
        masks = self.builder.load(V, array, "masks")
        all_of = self.builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, masks), hint="some")
        return self.builder.let(f"icmp ne i32 {all_of}, 0", "any")

    def _settle(self, before: str, block_scopes: Sequence[BlockScope]) -> None:
        """After a structure: who was there before it, less who left what is around it."""
        builder = self.builder
        innermost = next(w for w in reversed(block_scopes) if w.scope.present is not None)
        assert innermost.scope.present is not None
        here = builder.load(V, innermost.arrays[innermost.scope.present], "here")
        builder.store(V, builder.let(f"and {V} {here}, {builder.load(V, before, 'before')}", "active"), self.active)

    # -------------------------------------------------------------- loops and frames
    def loop(self, stmt: ir.While | ir.For) -> None:
        builder = self.builder
        scope = Scope("loop", builder.slot("i32", "in.turn"), builder.slot("i32", "in.loop"), of_block=True)
        assert scope.present is not None and scope.looping is not None
        block_scope = BlockScope(
            scope, {scope.present: builder.slot(V, "in.turn"), scope.looping: builder.slot(V, "in.loop")}
        )
        before, turns = builder.slot(V, "before"), builder.slot("i64", "turns")
        self._copy(self.active, before)
        builder.store("i64", "0", turns)
        variable: list[Node] = [stmt.var] if isinstance(stmt, ir.For) else []
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), stmt.start], lambda: self.statements.begin(stmt))
        self._copy(self.active, block_scope.arrays[scope.looping])
        self._copy(self.active, block_scope.arrays[scope.present])
        self.scopes.stack.append(scope)
        self.block_scopes.append(block_scope)
        head, turn, done = builder.label("block.loop"), builder.label("block.turn"), builder.label("block.loop.done")
        builder.jump(head)
        builder.place(head)
        if isinstance(stmt, ir.While):
            self.walk(stmt.setup)
        self.each_warp([*variable, stmt.cond if isinstance(stmt, ir.While) else stmt.stop], lambda: self._test(stmt))
        builder.branch(self._any(self.active), turn, done)
        builder.place(turn)
        for slot in (scope.present, scope.looping):
            self._copy(self.active, block_scope.arrays[slot])
        self._limit(stmt, turns, done)
        self.walk(stmt.body)
        self._copy(block_scope.arrays[scope.looping], self.active)
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), stmt.var], lambda: self.statements.advance(stmt))
        builder.jump(head)
        builder.place(done)
        self.scopes.stack.pop()
        self.block_scopes.pop()
        self._settle(before, self.block_scopes)

    def _test(self, stmt: ir.While | ir.For) -> None:
        builder, context = self.builder, self.context
        # The setup of a while is walked already.
        condition = context.expression(stmt.cond) if isinstance(stmt, ir.While) else self.statements.test(stmt)
        holds = builder.let(f"and i32 {bits(builder, condition)}, {context.active()}", "holds")
        self.statements.count_execution([stmt.site])
        if not condition.uniform:
            self.statements.count_divergence(stmt.site, holds)
        builder.store("i32", holds, builder.element("i32", self.active, context.warp, width="i32"))

    def _limit(self, stmt: ir.While | ir.For, turns: str, done: str) -> None:
        builder = self.builder
        taken = builder.load("i64", turns, "turns")
        cut, go = builder.label("cut.off"), builder.label("go")
        builder.branch(builder.let(f"icmp ne i64 {taken}, %.limit", "more"), go, cut, rarely=True)
        builder.place(cut)
        if self.context.options.careful:

            def end() -> None:
                self.statements.report_step_limit(stmt)
                self.scopes.kill()

            self.each_warp([], end, (), leaves=True)
            builder.jump(done)
        else:
            builder.do("ret i32 1")
        builder.place(go)
        builder.store("i64", builder.let(f"add i64 {taken}, 1", "turns"), turns)

    def frame(self, stmt: ir.Frame) -> None:
        builder = self.builder
        scope = Scope("frame", builder.slot("i32", "in.call"), of_block=True)
        assert scope.present is not None
        block_scope = BlockScope(scope, {scope.present: builder.slot(V, "in.call")})
        before = builder.slot(V, "before")
        self._copy(self.active, before)
        self._copy(self.active, block_scope.arrays[scope.present])
        self.scopes.stack.append(scope)
        self.block_scopes.append(block_scope)
        self.walk(stmt.body)
        self.scopes.stack.pop()
        self.block_scopes.pop()
        self._settle(before, self.block_scopes)

    # -------------------------------------------------------------- barriers
    def barrier(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """The whole block is there, or it is a fault."""
        self._meet(stmt, node)
        if "barriers" in self.context.options.checks:
            self._all_alive(stmt, node)
        if node.mode != "sync":
            self._combine(stmt, node)
        self._count(stmt.site)
        tracking.notify(self.context, "barrier")
        phase = self.builder.load("i32", "%.phase", "phase")
        self.builder.store("i32", self.builder.let(f"add i32 {phase}, 1", "phase"), "%.phase")

    def _meet(self, stmt: ir.Let, node: ir.Barrier) -> None:
        def describe(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            here, missing, absent, linear = (int(n) for n in found)
            away = where(linear, absent, request.grid, request.block, 0)
            return barriers.divergent(node.span, place, here, missing, away)

        builder = self.builder
        active, alive = builder.load(V, self.active, "active"), builder.load(V, self.alive, "alive")
        away = builder.let(f"and {V} {alive}, {builder.let(f'xor {V} {active}, splat (i32 -1)', 'others')}", "away")
        missing = builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, away), hint="missing")
        apart, met = builder.label("apart"), builder.label("met")
        builder.branch(builder.let(f"icmp eq i32 {missing}, 0", "all"), met, apart, rarely=True)
        builder.place(apart)
        record = self.context.records.record("barrier", stmt.site, [I64, I64, I64, I64], describe)
        record_missing(self.context, record, self.active, self.alive)
        builder.jump(met)
        builder.place(met)

    def _all_alive(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """No thread has returned yet."""

        def describe(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            here, gone, first, linear = (int(n) for n in found)
            away = where(linear, first, request.grid, request.block, 0)
            return barriers.returned(node.span, place, here, gone, away)

        builder = self.builder
        alive = builder.load(V, self.alive, "alive")
        gone = builder.let(f"xor {V} {alive}, {self.everyone}", "gone")
        some = builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, gone), hint="gone")
        left, stayed = builder.label("left"), builder.label("stayed")
        builder.branch(builder.let(f"icmp eq i32 {some}, 0", "all"), stayed, left, rarely=True)
        builder.place(left)
        concerned = builder.slot(V, "gone")
        builder.store(V, builder.let(f"or {V} {gone}, {builder.load(V, self.active, 'active')}", "either"), concerned)
        record = self.context.records.record("returned", stmt.site, [I64, I64, I64, I64], describe)
        record_missing(self.context, record, self.active, concerned)
        builder.jump(stayed)
        builder.place(stayed)

    def _combine(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """The predicates of all threads that are here, as each of them gets it."""
        builder, context = self.builder, self.context
        total, yes = builder.slot("i32", "arrived"), builder.slot("i32", "yes")
        for slot in (total, yes):
            builder.store("i32", "0", slot)

        def ask() -> None:
            holds = builder.let(f"and i32 {bits(builder, context.expression(node.value))}, {context.active()}", "holds")
            for slot, mask in ((total, context.active()), (yes, holds)):
                count = builder.call("i32", "llvm.ctpop.i32", ("i32", mask), hint="count")
                builder.store("i32", builder.let(f"add i32 {builder.load('i32', slot)}, {count}", "sum"), slot)

        self.each_warp([node.value], ask)
        if not isinstance(stmt.target, ir.Reg):
            return
        target = stmt.target
        count, arrived = builder.load("i32", yes, "count"), builder.load("i32", total, "arrived")
        match node.mode:
            case "count":
                result = Value(I32, count)
            case "and":
                result = Value(BOOL, builder.let(f"icmp eq i32 {count}, {arrived}", "everyone"))
            case _:
                result = Value(BOOL, builder.let(f"icmp ne i32 {count}, 0", "anyone"))
        complete = stmt.site in context.shapes.complete
        self.each_warp(
            [ir.Let(target, ir.Const(0, I32, stmt.span), stmt.span)],
            lambda: context.registers.assign(target.name, result, None if complete else context.mask),
        )

    def _count(self, site: int) -> None:
        builder, context = self.builder, self.context
        if not context.options.counters:
            return
        masks = builder.load(V, self.active, "active")
        here = builder.let(f"icmp ne {V} {masks}, zeroinitializer", "here")
        warps = context.population(builder.let(f"bitcast {many('i1')} {here} to i32", "here"), "warps")
        if self.whole:
            context.count(context.counter_slots.whole_warps([site]), warps)
            return
        each = builder.intrinsic("llvm.ctpop", V, masks, hint="lanes")
        lanes = builder.call("i32", "llvm.vector.reduce.add.v32i32", (V, each), hint="lanes")
        for column, amount in ((events.WARPS, warps), (events.LANES, builder.let(f"zext i32 {lanes} to i64", "lanes"))):
            context.count(context.counter_slots.counter(site, column), amount)
