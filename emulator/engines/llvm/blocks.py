"""A block: what stands between barriers runs warp by warp, what holds a barrier is walked by all warps together.

At this level a mask is one i32 for each of up to 32 warps, kept in memory and handled as one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.exits import exits
from ...language.types import BOOL, I32, I64, Array
from ...passes.barriers import holds_barrier
from ...profiler import events
from ...runtime.engine import Request
from ...sanitizer import barriers
from ...sanitizer.places import where
from ...sanitizer.schedules import ROWS
from .builder import FULL, LANES, many, vector
from .context import Build
from .control import Statements
from .fault_records import Number
from .masks import Scope, Scopes
from .races import tracking
from .segments import STATEMENTS, Node, assigning, mentioned, segments, written
from .values import Value, bits

V = many("i32")


@dataclass
class Walked:
    """A scope of the whole block: for each of its slots, the array that holds it for all warps."""

    scope: Scope
    arrays: dict[str, str]


class Block:
    """Prints the blocks of a kernel."""

    def __init__(self, build: Build) -> None:
        self.build, self.page = build, build.page
        self.scopes = Scopes(build)
        self.statements = Statements(build, self.scopes)
        self.active = self.page.slot(V, "active.lanes")
        self.alive = self.page.slot(V, "alive.lanes")
        kernel = Scope("kernel", "%.alive", walked=True)
        self.walked = [Walked(kernel, {"%.alive": self.alive})]
        self.scopes.stack.append(kernel)
        self.whole = self._whole_warps()

    def _whole_warps(self) -> bool:
        """Whether, between barriers, each warp is there as a whole or not at all."""
        x, y, z = self.build.options.block
        return x * y * z % LANES == 0 and not self.build.options.careful and not self._ragged(self.build.kernel.body)

    def _ragged(self, stmts: ir.Body) -> bool:
        """Whether walked statements may tear warps apart."""
        for stmt in stmts:
            if not holds_barrier(stmt):
                if any(found.site not in self.build.divergence.uniform_exits for found in exits(stmt)):
                    return True
                continue
            match stmt:
                case ir.If():
                    torn = (
                        self.build.divergence.of(stmt.cond) != 0 or self._ragged(stmt.then) or self._ragged(stmt.orelse)
                    )
                case ir.While():
                    torn = (
                        stmt.site in self.build.divergence.divergent_loops
                        or self._ragged(stmt.setup)
                        or self._ragged(stmt.body)
                    )
                case ir.For():
                    torn = stmt.site in self.build.divergence.divergent_loops or self._ragged(stmt.body)
                case ir.Frame():
                    torn = self._ragged(stmt.body)
                case _:
                    torn = False
            if torn:
                return True
        return False

    # -------------------------------------------------------------- the whole
    def run(self) -> None:
        """Print one block."""
        threads = self.build.options.block[0] * self.build.options.block[1] * self.build.options.block[2]
        masks = [FULL if threads >= 32 * (w + 1) else (1 << max(0, threads - 32 * w)) - 1 for w in range(LANES)]
        self.everyone = vector("i32", (m if w < self.build.warps else 0 for w, m in enumerate(masks)))
        for array in (self.active, self.alive):
            self.page.store(V, self.everyone, array)
        self.page.store("i32", "0", "%.phase")
        self.keep()
        self.walk(self.build.kernel.body)

    def keep(self) -> None:
        """Registers that more than one phase mentions live in the workspace between them."""
        seen: dict[str, int] = {}
        for segment in segments(self.build.kernel.body):
            for name in mentioned(segment):
                if name in self.build.registers.cells:
                    seen[name] = seen.get(name, 0) + 1
        several = [name for name, count in seen.items() if count > 1]
        cells = self.build.registers
        cells.keep(several, self.build.warps)
        if several:
            arguments = (("ptr", "%.workspace"), ("i8", "0"), ("i64", str(cells.workspace)), ("i1", "false"))
            self.page.call("void", "llvm.memset.p0.i64", *arguments)
        given = [p.name for p in self.build.kernel.params if p.name in several]
        if given:
            self.each_warp((), lambda: cells.save(given, self.build.warp), given)

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

        leaves = self.scopes.scatters(stmts)
        self.each_warp(stmts, run, (), leaves)

    def each_warp(
        self, nodes: Sequence[Node], run: Callable[[], None], fresh: Iterable[str] = (), leaves: bool = False
    ) -> None:
        """Run something for every warp that has active lanes. `fresh`: registers to begin with their first values.

        leaves: lanes may leave scopes of the block meanwhile.
        """
        page, build = self.page, self.build
        single = build.warps == 1
        head, turn, following, done = (page.label(h) for h in ("warps", "warp", "warp.next", "warps.done"))
        counter = page.slot("i32", "warp.number")
        page.store("i32", "0", counter)
        if single:
            build.warp = "0"
        else:
            page.jump(head)
            page.place(head)
            build.warp = number = page.load("i32", counter, "warp")
            page.branch(page.let(f"icmp ult i32 {number}, {build.warps}", "more"), turn, done)
            page.place(turn)
            if build.options.scheduled:
                build.warp = self._scheduled(number)
        mask = page.load("i32", page.element("i32", self.active, build.warp, width="i32"), "active")
        busy = page.label("busy")
        page.branch(page.let(f"icmp eq i32 {mask}, 0", "idle"), following, busy)
        page.place(busy)
        if not single and tracking.concerns(build, nodes):
            tracking.turn(build)
        known = [n for n in mentioned(nodes) if n in build.registers.cells]
        self._enter(known, fresh)
        self._run(mask, run, nodes)
        if leaves:
            here = page.load("i32", self.scopes.innermost(), "here")
            left = page.let(f"and i32 {here}, {mask}", "left")
            page.store("i32", left, page.element("i32", self.active, build.warp, width="i32"))
            self._move(out=True)
        changed = written(nodes)
        build.registers.save([n for n in known if n in changed], build.warp)
        page.jump(following)
        page.place(following)
        if single:
            return
        page.store("i32", page.let(f"add i32 {number}, 1", "warp"), counter)
        page.jump(head)
        page.place(done)

    def _scheduled(self, number: str) -> str:
        """The warp whose turn it is in the order given at launch."""
        page = self.page
        block = page.let(f"trunc i64 {self.build.block} to i32", "block")
        row = page.let(f"and i32 {page.let(f'add i32 {block}, {self.build.phase()}')}, {ROWS - 1}", "row")
        at = page.let(f"add i32 {page.let(f'mul i32 {row}, 32')}, {number}", "turn")
        return page.let(f"trunc i64 {page.load('i64', page.element('i64', '%.order', at, width='i32'))} to i32", "warp")

    def _enter(self, known: Sequence[str], fresh: Iterable[str]) -> None:
        build, cells = self.build, self.build.registers
        self._move(out=False)
        kept = [n for n in known if n in cells.kept]
        new = [*fresh, *(n for n in known if n not in cells.kept)]
        cells.clear(new)
        for param in build.kernel.params:
            if param.name in new and not isinstance(param.type, Array):
                cells.assign(param.name, build.parameter(param), None)
        cells.restore(kept, build.warp)

    def _move(self, out: bool) -> None:
        """The masks of the block's scopes, from their arrays into the warp's slots, or back."""
        page = self.page
        for walked in self.walked:
            for slot, array in walked.arrays.items():
                at = page.element("i32", array, self.build.warp, width="i32")
                source, target = (slot, at) if out else (at, slot)
                page.store("i32", page.load("i32", source, "mask"), target)

    def _run(self, mask: str, run: Callable[[], None], nodes: Sequence[Node]) -> None:
        build = self.build
        if self.whole:
            build.mask = None
            run()
            return
        stmts = [n for n in nodes if isinstance(n, STATEMENTS)]
        build.mask = None
        if not stmts:
            build.mask = mask
            run()
            build.mask = None
            return

        def body() -> bool:
            run()
            return True

        self.statements.versions(mask, stmts, body)

    # -------------------------------------------------------------- branches
    def branch(self, stmt: ir.If) -> None:
        page, build = self.page, self.build
        taken, rest, before = (page.slot(V, hint) for hint in ("taken", "rest", "before"))
        for array in (taken, rest):
            page.store(V, "zeroinitializer", array)

        def test() -> None:
            condition = build.expression(stmt.cond)
            holds = page.let(f"and i32 {bits(page, condition)}, {build.active()}", "holds")
            self.statements.line([stmt.site])
            if not condition.uniform:
                self.statements.count_divergence(stmt.site, holds)
            page.store("i32", holds, page.element("i32", taken, build.warp, width="i32"))
            others = page.let(f"xor i32 {holds}, {build.active()}", "others")
            page.store("i32", others, page.element("i32", rest, build.warp, width="i32"))

        self.each_warp([stmt.cond], test)
        self._copy(self.active, before)
        for masks, arm in ((taken, stmt.then), (rest, stmt.orelse)):
            if arm:
                then, done = page.label("block.then"), page.label("block.endif")
                page.branch(self._any(masks), then, done)
                page.place(then)
                self._copy(masks, self.active)
                self.walk(arm)
                page.jump(done)
                page.place(done)
        self._settle(before, self.walked)

    def _copy(self, source: str, target: str) -> None:
        self.page.store(V, self.page.load(V, source, "masks"), target)

    def _any(self, array: str) -> str:
        """An i1: some warp has a lane in the masks."""
        masks = self.page.load(V, array, "masks")
        all_of = self.page.call("i32", "llvm.vector.reduce.or.v32i32", (V, masks), hint="some")
        return self.page.let(f"icmp ne i32 {all_of}, 0", "any")

    def _settle(self, before: str, walked: Sequence[Walked]) -> None:
        """After a structure: who was there before it, less who left what is around it."""
        page = self.page
        innermost = next(w for w in reversed(walked) if w.scope.here is not None)
        assert innermost.scope.here is not None
        here = page.load(V, innermost.arrays[innermost.scope.here], "here")
        page.store(V, page.let(f"and {V} {here}, {page.load(V, before, 'before')}", "active"), self.active)

    # -------------------------------------------------------------- loops and frames
    def loop(self, stmt: ir.While | ir.For) -> None:
        page = self.page
        scope = Scope("loop", page.slot("i32", "in.turn"), page.slot("i32", "in.loop"), walked=True)
        assert scope.here is not None and scope.stay is not None
        walked = Walked(scope, {scope.here: page.slot(V, "in.turn"), scope.stay: page.slot(V, "in.loop")})
        before, turns = page.slot(V, "before"), page.slot("i64", "turns")
        self._copy(self.active, before)
        page.store("i64", "0", turns)
        variable: list[Node] = [stmt.var] if isinstance(stmt, ir.For) else []
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), stmt.start], lambda: self.statements.begin(stmt))
        self._copy(self.active, walked.arrays[scope.stay])
        self._copy(self.active, walked.arrays[scope.here])
        self.scopes.stack.append(scope)
        self.walked.append(walked)
        head, turn, done = page.label("block.loop"), page.label("block.turn"), page.label("block.loop.done")
        page.jump(head)
        page.place(head)
        if isinstance(stmt, ir.While):
            self.walk(stmt.setup)
        self.each_warp([*variable, stmt.cond if isinstance(stmt, ir.While) else stmt.stop], lambda: self._test(stmt))
        page.branch(self._any(self.active), turn, done)
        page.place(turn)
        for slot in (scope.here, scope.stay):
            self._copy(self.active, walked.arrays[slot])
        self._limit(stmt, turns, done)
        self.walk(stmt.body)
        self._copy(walked.arrays[scope.stay], self.active)
        if isinstance(stmt, ir.For):
            self.each_warp([assigning(stmt), stmt.var], lambda: self.statements.advance(stmt))
        page.jump(head)
        page.place(done)
        self.scopes.stack.pop()
        self.walked.pop()
        self._settle(before, self.walked)

    def _test(self, stmt: ir.While | ir.For) -> None:
        page, build = self.page, self.build
        # The setup of a while is walked already.
        condition = build.expression(stmt.cond) if isinstance(stmt, ir.While) else self.statements.test(stmt)
        holds = page.let(f"and i32 {bits(page, condition)}, {build.active()}", "holds")
        self.statements.line([stmt.site])
        if not condition.uniform:
            self.statements.count_divergence(stmt.site, holds)
        page.store("i32", holds, page.element("i32", self.active, build.warp, width="i32"))

    def _limit(self, stmt: ir.While | ir.For, turns: str, done: str) -> None:
        page = self.page
        taken = page.load("i64", turns, "turns")
        cut, go = page.label("cut.off"), page.label("go")
        page.branch(page.let(f"icmp ne i64 {taken}, %.limit", "more"), go, cut, rarely=True)
        page.place(cut)
        if self.build.options.careful:

            def end() -> None:
                self.statements.cut_off(stmt)
                self.scopes.kill()

            self.each_warp([], end, (), leaves=True)
            page.jump(done)
        else:
            page.do("ret i32 1")
        page.place(go)
        page.store("i64", page.let(f"add i64 {taken}, 1", "turns"), turns)

    def frame(self, stmt: ir.Frame) -> None:
        page = self.page
        scope = Scope("frame", page.slot("i32", "in.call"), walked=True)
        assert scope.here is not None
        walked = Walked(scope, {scope.here: page.slot(V, "in.call")})
        before = page.slot(V, "before")
        self._copy(self.active, before)
        self._copy(self.active, walked.arrays[scope.here])
        self.scopes.stack.append(scope)
        self.walked.append(walked)
        self.walk(stmt.body)
        self.scopes.stack.pop()
        self.walked.pop()
        self._settle(before, self.walked)

    # -------------------------------------------------------------- barriers
    def barrier(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """The whole block is there, or it is a fault."""
        self._meet(stmt, node)
        if "barriers" in self.build.options.checks:
            self._all_alive(stmt, node)
        if node.mode != "sync":
            self._combine(stmt, node)
        self._count(stmt.site)
        tracking.happens(self.build, "barrier")
        phase = self.page.load("i32", "%.phase", "phase")
        self.page.store("i32", self.page.let(f"add i32 {phase}, 1", "phase"), "%.phase")

    def _meet(self, stmt: ir.Let, node: ir.Barrier) -> None:
        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            here, missing, absent, linear = (int(n) for n in found)
            away = where(linear, absent, request.grid, request.block, 0)
            return barriers.divergent(node.span, place, here, missing, away)

        page = self.page
        active, alive = page.load(V, self.active, "active"), page.load(V, self.alive, "alive")
        away = page.let(f"and {V} {alive}, {page.let(f'xor {V} {active}, splat (i32 -1)', 'others')}", "away")
        missing = page.call("i32", "llvm.vector.reduce.or.v32i32", (V, away), hint="missing")
        apart, met = page.label("apart"), page.label("met")
        page.branch(page.let(f"icmp eq i32 {missing}, 0", "all"), met, apart, rarely=True)
        page.place(apart)
        record = self.build.records.record("barrier", stmt.site, [I64, I64, I64, I64], tell)
        pointer = page.element("i64", "%.faults", record.start, "record")
        place = (("i64", self.build.block), ("i32", self.build.phase()))
        page.call("void", "note_barrier", ("ptr", pointer), *place, ("ptr", self.active), ("ptr", self.alive))
        page.jump(met)
        page.place(met)

    def _all_alive(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """No thread has returned yet."""

        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            here, gone, first, linear = (int(n) for n in found)
            away = where(linear, first, request.grid, request.block, 0)
            return barriers.returned(node.span, place, here, gone, away)

        page = self.page
        alive = page.load(V, self.alive, "alive")
        gone = page.let(f"xor {V} {alive}, {self.everyone}", "gone")
        some = page.call("i32", "llvm.vector.reduce.or.v32i32", (V, gone), hint="gone")
        left, stayed = page.label("left"), page.label("stayed")
        page.branch(page.let(f"icmp eq i32 {some}, 0", "all"), stayed, left, rarely=True)
        page.place(left)
        concerned = page.slot(V, "gone")
        page.store(V, page.let(f"or {V} {gone}, {page.load(V, self.active, 'active')}", "either"), concerned)
        record = self.build.records.record("returned", stmt.site, [I64, I64, I64, I64], tell)
        pointer = page.element("i64", "%.faults", record.start, "record")
        place = (("i64", self.build.block), ("i32", self.build.phase()))
        page.call("void", "note_barrier", ("ptr", pointer), *place, ("ptr", self.active), ("ptr", concerned))
        page.jump(stayed)
        page.place(stayed)

    def _combine(self, stmt: ir.Let, node: ir.Barrier) -> None:
        """The predicates of all threads that are here, as each of them gets it."""
        page, build = self.page, self.build
        total, yes = page.slot("i32", "arrived"), page.slot("i32", "yes")
        for slot in (total, yes):
            page.store("i32", "0", slot)

        def ask() -> None:
            holds = page.let(f"and i32 {bits(page, build.expression(node.value))}, {build.active()}", "holds")
            for slot, mask in ((total, build.active()), (yes, holds)):
                count = page.call("i32", "llvm.ctpop.i32", ("i32", mask), hint="count")
                page.store("i32", page.let(f"add i32 {page.load('i32', slot)}, {count}", "sum"), slot)

        self.each_warp([node.value], ask)
        if not isinstance(stmt.target, ir.Reg):
            return
        target = stmt.target
        count, arrived = page.load("i32", yes, "count"), page.load("i32", total, "arrived")
        match node.mode:
            case "count":
                result = Value(I32, count)
            case "and":
                result = Value(BOOL, page.let(f"icmp eq i32 {count}, {arrived}", "everyone"))
            case _:
                result = Value(BOOL, page.let(f"icmp ne i32 {count}, 0", "anyone"))
        complete = stmt.site in build.divergence.complete
        self.each_warp(
            [ir.Let(target, ir.Const(0, I32, stmt.span), stmt.span)],
            lambda: build.registers.assign(target.name, result, None if complete else build.mask),
        )

    def _count(self, site: int) -> None:
        page, build = self.page, self.build
        if not build.options.counters:
            return
        masks = page.load(V, self.active, "active")
        here = page.let(f"icmp ne {V} {masks}, zeroinitializer", "here")
        warps = build.population(page.let(f"bitcast {many('i1')} {here} to i32", "here"), "warps")
        if self.whole:
            build.count(build.tally.full([site]), warps)
            return
        each = page.intrinsic("llvm.ctpop", V, masks, hint="lanes")
        lanes = page.call("i32", "llvm.vector.reduce.add.v32i32", (V, each), hint="lanes")
        for column, amount in ((events.WARPS, warps), (events.LANES, page.let(f"zext i32 {lanes} to i64", "lanes"))):
            build.count(build.tally.counter(site, column), amount)
