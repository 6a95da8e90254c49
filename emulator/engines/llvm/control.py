"""Code generation for the statements of one warp between barriers, under masks: plain statements, branches, loops and frames.

A large divergent region of optimised code is generated in two versions: for full warps, without masks, and for partial warps.
Executions are counted once for a run of statements without exits.
"""

from collections.abc import Callable, Sequence

from ...errors import Diagnostic
from ...ir import counting
from ...ir import nodes as ir
from ...ir.exits import exits
from ...ir.walk import expressions, statements
from ...language.types import BOOL, Scalar
from ...llvm.builder import FULL, many, scalar_type
from ...llvm.values import Value, Values, bits, lanes, one_lane
from ...passes.waiting import may_stall, waits
from ...profiler import events
from ...runtime.engine import MAX_FAULTS_PER_LOOP, Request
from ...sanitizer import barriers, checkers
from ...sanitizer.races.happens_before import async_order
from . import interrupts, matrices, warp
from .context import CodegenContext, LoopSlots
from .counters import samples
from .fault_records import Describe, Number
from .faults import record_fault
from .masks import Scope, Scopes
from .memory import access
from .races import tracking

SPECIALISE_FROM = 4
"""Minimum statements and operations of a region with a second version for full warps."""


class StatementEmitter:
    """Code generator for statements, with the builder of a context."""

    def __init__(self, context: CodegenContext, scopes: Scopes) -> None:
        self.context, self.builder, self.scopes = context, context.builder, scopes
        self.depth = 0
        # Enclosing loops, by site: the effects that count as progress, and a slot.
        self.stalling: dict[int, tuple[frozenset[int], str]] = {}

    def body(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Generate a statement list. Return whether control reaches its end."""
        for at, stmt in enumerate(stmts):
            if at == 0 or self.may_leave(stmts[at - 1]):
                self.count_execution(self._sites_of_run(stmts[at:]))
                executions = self.context.executions
            self.comment(stmt)
            if not isinstance(stmt, _CONTROL):
                self.plain(stmt)
                self.mark_progress(stmt)
                continue
            if not self.control(stmt):
                return False
            self.context.executions = executions
            rest = stmts[at + 1 :]
            if rest and self.scopes.leaves_divergently([stmt]):
                lanes_inside = self.builder.load("i32", self.scopes.innermost(), "present")
                left = self.builder.let(f"and i32 {lanes_inside}, {self.context.active()}", "present")
                self.specialise(left, rest, lambda rest=rest: self.body(rest))  # type: ignore[misc]
                return True
        return True

    def _sites_of_run(self, stmts: Sequence[ir.Stmt]) -> list[int]:
        """Return the sites with the same executing lanes as the first statement: up to a statement with an exit."""
        sites = []
        for stmt in stmts:
            uncounted = isinstance(stmt, ir.While | ir.For | ir.Frame) or not self.context.prepared.counts(stmt)
            if not uncounted:  # loops count their tests, frames count nothing
                sites.append(stmt.site)
            if self.may_leave(stmt):
                break
        return sites

    def may_leave(self, stmt: ir.Stmt) -> bool:
        """Return whether lanes may leave an enclosing scope in the statement."""
        return any(exits(stmt)) or self.scopes.leaves_divergently([stmt])

    def specialise(self, mask: str, stmts: Sequence[ir.Stmt], body: Callable[[], bool]) -> None:
        """Generate a region for the lanes of a mask, skipped if it is empty: in two versions, for full and partial warps, or in one."""
        builder, context, outer = self.builder, self.context, self.context.mask
        end, some = builder.label("done"), builder.label("some")
        if outer is None and self.depth < context.specialise_depth and _size(stmts) >= SPECIALISE_FROM:
            whole, partial_warps = builder.label("whole"), builder.label("part")
            builder.branch(builder.let(f"icmp eq i32 {mask}, {FULL}", "full"), whole, partial_warps)
            builder.place(whole)
            self.depth += 1
            if body():
                builder.jump(end)
            self.depth -= 1
            builder.place(partial_warps)
        builder.branch(builder.let(f"icmp eq i32 {mask}, 0", "none"), end, some)
        builder.place(some)
        context.mask = mask
        if body():
            builder.jump(end)
        context.mask = outer
        builder.place(end)

    def comment(self, stmt: ir.Stmt) -> None:
        span = stmt.value.span if isinstance(stmt, ir.Let) else stmt.span
        self.builder.comment(f"{span.name.rpartition('/')[2]}:{span.line}: {span.text}")

    # -------------------------------------------------------------- counting
    def count_execution(self, sites: Sequence[int]) -> None:
        """Count an execution of statements."""
        context = self.context
        if not context.options.counters or not sites:
            return
        if context.mask is None:
            context.executions = context.counter_slots.whole_warps(sites)
        else:
            context.executions, lanes_slot = context.counter_slots.masked_warps(sites)
            context.count(lanes_slot, context.population(context.mask))
        context.count(context.executions)

    def count_divergence(self, site: int, taken: str) -> None:
        """Count a divergent condition. taken: the lanes with a true condition."""
        if not self.context.options.counters:
            return
        builder = self.builder
        some = builder.let(f"icmp ne i32 {taken}, 0", "some")
        less = builder.let(f"icmp ne i32 {taken}, {self.context.active()}", "less")
        divergent = builder.let(f"zext i1 {builder.let(f'and i1 {some}, {less}', 'divergent')} to i64", "divergent")
        self.context.count(self.context.counter_slots.counter(site, events.DIVERGENT), divergent)

    # -------------------------------------------------------------- plain statements
    def plain(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let():
                value = self.right_side(stmt)
                if isinstance(stmt.target, ir.Reg):
                    assert value is not None
                    complete = stmt.site in self.context.divergence.complete
                    self.context.registers.assign(stmt.target.name, value, None if complete else self.context.mask)
            case ir.Store():
                with matrices.first_lanes(self.context, stmt.lanes):
                    access.store(self.context, stmt)
            case ir.WarpBarrier():
                warp.syncwarp(self.context, stmt)
            case ir.Fence():
                scope = {"block": 1, "device": 2}[stmt.scope]
                tracking.notify(self.context, "fence", ("i32", self.context.active()), ("i32", str(scope)))
            case ir.AsyncCommit():
                tracking.notify(self.context, "commit_copies")
            case ir.AsyncWait():
                tracking.notify(self.context, "wait_for_copies", ("i64", str(stmt.pending)))
            case ir.AsyncOrder() if (order := async_order(stmt.mode, stmt.pending)) is not None:
                tracking.notify(self.context, "order_async", ("i64", str(order[0])), ("i64", str(order[1])))
            case ir.Assert():
                self.assertion(stmt)
            case ir.Check():
                self.check(stmt)
            case ir.Print():
                self.printing(stmt)
        # Allocations are executed before the kernel starts.

    def right_side(self, stmt: ir.Let) -> Values | None:
        node, context = stmt.value, self.context
        match node:
            case ir.Load():
                with matrices.first_lanes(context, node.lanes):
                    return access.load(context, node, stmt.site)
            case ir.Atomic() | ir.CompareSwap():
                return access.atomic(context, node, stmt.site)
            case ir.Shuffle():
                return warp.shuffle(context, node, stmt.site)
            case ir.Vote():
                return warp.vote(context, node, stmt.site)
            case ir.Mma():
                return matrices.mma(context, node, stmt.site)
            case ir.MoveMatrix():
                return matrices.move_matrix(context, node, stmt.site)
        assert not isinstance(node, ir.Effect)
        values = context.values(node)
        return values[0] if isinstance(node.type, Scalar) else values

    def assertion(self, stmt: ir.Assert) -> None:
        def describe(place: str, request: Request, message_values: Sequence[Number]) -> Diagnostic:
            return barriers.failed(stmt, place, message_values)

        self.expect("assertion", stmt, barriers.asserted_values(stmt), describe)

    def check(self, stmt: ir.Check) -> None:
        kernel = self.context.kernel

        def describe(place: str, request: Request, message_values: Sequence[Number]) -> Diagnostic:
            return checkers.describe(stmt, kernel, message_values, place)

        self.expect(stmt.about, stmt, stmt.shown, describe)

    def expect(self, kind: str, stmt: ir.Assert | ir.Check, shown: Sequence[ir.Expr], describe: Describe) -> None:
        """Generate a fault of the lanes with a false condition. shown: expressions with values for the message."""
        builder, context = self.builder, self.context
        holds = bits(builder, context.expression(stmt.cond))
        failed = builder.let(f"and i32 {builder.let(f'xor i32 {holds}, -1', 'fails')}, {context.active()}", "failed")
        with builder.when_any(failed, "fails", rarely=True):
            types = [e.type for e in shown if isinstance(e.type, Scalar)]
            record = context.records.record(kind, stmt.site, types, describe)
            record_fault(context, record, failed, [context.expression(e) for e in shown])

    def printing(self, stmt: ir.Print) -> None:
        """Generate a call to Python that prints the values of the lanes."""
        builder, context = self.builder, self.context
        values = [context.expression(p) for p in stmt.items if not isinstance(p, str)]
        buffer = builder.slot(f"[{256 * max(1, len(values))} x i8]", "printed")
        for number_, value in enumerate(values):
            ref, type = lanes(builder, value), many(scalar_type(value.type))
            if value.type is BOOL:
                ref, type = builder.let(f"zext {type} {ref} to {many('i8')}", "byte"), many("i8")
            builder.store(type, ref, builder.element("i8", buffer, 256 * number_))
        context.call_host(context.host_calls.printing(stmt), context.active(), buffer)

    # -------------------------------------------------------------- control
    def control(self, stmt: ir.Stmt) -> bool:
        """Generate a control statement. Return whether control reaches the next statement."""
        match stmt:
            case ir.If():
                return self.branch(stmt)
            case ir.While() | ir.For():
                return self.loop(stmt)
            case ir.Frame():
                return self.frame(stmt)
            case ir.Break() | ir.Continue() | ir.Return():
                if not self.scopes.leaves_uniformly(stmt):
                    self.scopes.leave(stmt)
                    return True
                scope = self.scopes.target(stmt)
                self.builder.jump(scope.next if isinstance(stmt, ir.Continue) else scope.end)
                return False
        raise TypeError(f"{type(stmt).__name__} cannot be generated between barriers")

    def branch(self, stmt: ir.If) -> bool:
        builder, context = self.builder, self.context
        condition = context.expression(stmt.cond)
        if not condition.uniform:
            taken = builder.let(f"and i32 {bits(builder, condition)}, {context.active()}", "taken")
            rest = builder.let(f"xor i32 {taken}, {context.active()}", "rest")
            self.count_divergence(stmt.site, taken)
            self.specialise(taken, stmt.then, lambda: self.body(stmt.then))
            if stmt.orelse:
                self.specialise(rest, stmt.orelse, lambda: self.body(stmt.orelse))
            return True
        then, orelse, end = builder.label("then"), builder.label("else"), builder.label("endif")
        builder.branch(condition.ref, then, orelse)
        falls = False
        for label, arm in ((then, stmt.then), (orelse, stmt.orelse)):
            builder.place(label)
            if self.body(arm):
                builder.jump(end)
                falls = True
        if falls:
            builder.place(end)
        return falls

    def frame(self, stmt: ir.Frame) -> bool:
        builder = self.builder
        scope = Scope("frame", builder.slot("i32", "in.call"), end=builder.label("returned"))
        assert scope.present is not None
        builder.store("i32", self.context.active(), scope.present)
        self.scopes.stack.append(scope)
        if self.body(stmt.body):
            builder.jump(scope.end)
        self.scopes.stack.pop()
        builder.place(scope.end)
        return True

    # -------------------------------------------------------------- loops
    def loop(self, stmt: ir.While | ir.For) -> bool:
        builder, context = self.builder, self.context
        end, following = builder.label("loop.done"), builder.label("loop.next")
        scope = Scope("loop", None, None, end, following)
        self.begin(stmt)
        iterations = builder.slot("i64", "iterations")
        builder.store("i64", "0", iterations)
        self.scopes.stack.append(scope)
        context.loops[stmt.site] = LoopSlots(iterations, _limit(stmt), builder.slot("i64", "excess"))
        builder.store("i64", "0", context.loops[stmt.site].out_of_bounds)
        if progress := may_stall(stmt):
            self.stalling[stmt.site] = progress, builder.slot("i64", "stalled")
            builder.store("i64", "0", self.stalling[stmt.site][1])
        if (
            stmt.site in context.divergence.divergent_loops
            or self.scopes.leaves_divergently(stmt.body)
            or context.options.step_limited
        ):
            scope.present, scope.looping = builder.slot("i32", "in.iteration"), builder.slot("i32", "in.loop")
            self.divergent_loop(stmt, scope, iterations)
        else:
            self.convergent_loop(stmt, scope, iterations)
        self.stalling.pop(stmt.site, None)
        del context.loops[stmt.site]
        self.scopes.stack.pop()
        builder.place(end)
        return True

    def mark_progress(self, stmt: ir.Stmt) -> None:
        """Mark the loops with progress by this statement."""
        for progress, stalled in self.stalling.values():
            if isinstance(stmt, ir.Let | ir.Store) and stmt.site in progress:
                self.builder.store("i64", "0", stalled)

    def begin(self, stmt: ir.While | ir.For) -> None:
        """Initialise the variable of a for loop."""
        if isinstance(stmt, ir.For):
            self.context.registers.assign(stmt.var.name, self.context.expression(stmt.start), None)

    def advance(self, stmt: ir.While | ir.For) -> None:
        """Step the variable of a for loop."""
        if isinstance(stmt, ir.For):
            self.context.registers.assign(stmt.var.name, self.context.expression(counting.moved(stmt)), None)

    def test(self, stmt: ir.While | ir.For) -> Value:
        """Generate the setup and the condition of a loop. Return the value of the condition."""
        if isinstance(stmt, ir.While):
            self.body(stmt.setup)
            return self.context.expression(stmt.cond)
        return self.context.expression(counting.test(stmt))

    def convergent_loop(self, stmt: ir.While | ir.For, scope: Scope, iterations: str) -> None:
        """Generate a loop with uniform iterations."""
        builder = self.builder
        head, iteration = builder.label("loop"), builder.label("iteration")
        builder.jump(head)
        builder.place(head)
        condition = self.test(stmt)
        self.count_execution([stmt.site])
        # Another loop may have made the variable a vector.
        builder.branch(one_lane(builder, condition, "0"), iteration, scope.end)
        builder.place(iteration)
        self.check_step_limit(stmt, iterations, scope)
        if self.body(stmt.body):
            builder.jump(scope.next)
        builder.place(scope.next)
        self.advance(stmt)
        builder.jump(head)

    def divergent_loop(self, stmt: ir.While | ir.For, scope: Scope, iterations: str) -> None:
        """Generate a loop with a divergent exit."""
        builder, context, outer = self.builder, self.context, self.context.mask
        assert scope.present is not None and scope.looping is not None
        specialised = outer is None and self.depth < context.specialise_depth
        builder.store("i32", context.active(), scope.looping)
        builder.store("i32", context.active(), scope.present)
        head, whole, partial_warps, whole_iteration, partial_iteration = (
            builder.label(hint) for hint in ("loop", "whole", "part", "whole.iteration", "part.iteration")
        )
        builder.jump(head)
        builder.place(head)
        continuing = builder.load("i32", scope.looping, "looping")
        if specialised:
            builder.branch(builder.let(f"icmp eq i32 {continuing}, {FULL}", "full"), whole, partial_warps)
            self.depth += 1
            builder.place(whole)
            self.test_lanes(stmt, scope, whole_iteration, partial_iteration)
            builder.place(whole_iteration)
            self.iteration(stmt, scope, iterations)
            self.depth -= 1
        else:
            builder.jump(partial_warps)
        builder.place(partial_warps)
        context.mask = continuing
        self.test_lanes(stmt, scope, partial_iteration, partial_iteration)
        builder.place(partial_iteration)
        context.mask = builder.load("i32", scope.present, "present")
        self.iteration(stmt, scope, iterations)
        context.mask = outer
        builder.place(scope.next)
        remaining = builder.load("i32", scope.looping, "remaining")
        again = builder.label("repeat")
        builder.branch(builder.let(f"icmp eq i32 {remaining}, 0", "empty"), scope.end, again)
        builder.place(again)
        self.advance(stmt)
        builder.jump(head)

    def test_lanes(self, stmt: ir.While | ir.For, scope: Scope, whole: str, partial_warps: str) -> None:
        """Test the condition. Jump to the version of the iteration for the remaining lanes, or to the end of the loop."""
        builder = self.builder
        condition = self.test(stmt)
        holds = bits(builder, condition)
        taken = builder.let(f"and i32 {holds}, {self.context.active()}", "taken")
        self.count_execution([stmt.site])
        if not condition.uniform:
            self.count_divergence(stmt.site, taken)
        assert scope.present is not None and scope.looping is not None
        builder.store("i32", taken, scope.looping)
        builder.store("i32", taken, scope.present)
        some = builder.label("some")
        builder.branch(builder.let(f"icmp eq i32 {taken}, 0", "none"), scope.end, some)
        builder.place(some)
        if whole != partial_warps:
            builder.branch(builder.let(f"icmp eq i32 {taken}, {FULL}", "full"), whole, partial_warps)
        else:
            builder.jump(partial_warps)

    def iteration(self, stmt: ir.While | ir.For, scope: Scope, iterations: str) -> None:
        """Generate one version of the body of a divergent loop."""
        self.check_step_limit(stmt, iterations, scope)
        if self.body(stmt.body):
            self.builder.jump(scope.next)

    def check_step_limit(self, stmt: ir.While | ir.For, iterations: str, scope: Scope) -> None:
        """Count the iteration, and end the loop at the step limit."""
        builder = self.builder
        completed, proceed = self.begin_iteration(stmt, iterations)
        if self.context.options.step_limited:
            out_of_bounds = builder.load("i64", self.context.loops[stmt.site].out_of_bounds, "outside")
            with builder.when(builder.let(f"icmp ult i64 {out_of_bounds}, {MAX_FAULTS_PER_LOOP}", "inside"), "report"):
                self.report_step_limit(stmt)
            self.scopes.kill()
            builder.jump(scope.end)
        else:
            # The remaining lanes need masks in all code: the launch restarts with code for this case.
            builder.do("ret i32 1")
        builder.place(proceed)
        builder.store("i64", builder.let(f"add i64 {completed}, 1", "iterations"), iterations)
        if self.context.options.detail:
            starting = self.context.population(self.context.active())
            samples.count_iteration(self.context, stmt.site, completed, starting, "1")

    def begin_iteration(self, stmt: ir.While | ir.For, iterations: str) -> tuple[str, str]:
        """Poll for interrupts and test the limit of iterations. Return the number of iterations and the label of the body.

        The code generated next runs if the limit is exceeded.
        """
        builder = self.builder
        interrupts.take(builder, _size(stmt.body) + 1)
        completed = builder.load("i64", iterations, "iterations")
        cut, proceed = builder.label("cut.off"), builder.label("proceed")
        more = builder.let(f"icmp ne i64 {completed}, {_limit(stmt)}", "more")
        if stmt.site in self.stalling:
            slot = self.stalling[stmt.site][1]
            stalled = builder.load("i64", slot, "stalled")
            builder.store("i64", builder.let(f"add i64 {stalled}, 1", "stalled"), slot)
            more = builder.let(f"and i1 {more}, {builder.let(f'icmp ne i64 {stalled}, %.waiting', 'moves')}", "more")
        builder.branch(more, proceed, cut, rarely=True)
        builder.place(cut)
        return completed, proceed

    def report_step_limit(self, stmt: ir.While | ir.For) -> None:
        """Record the fault of the active lanes."""

        def describe(place: str, request: Request, message_values: Sequence[Number]) -> Diagnostic:
            stalled = bool(may_stall(stmt))
            return barriers.endless(stmt.span, place, request.iteration_limits[not (waits(stmt) or stalled)], stalled)

        record_fault(
            self.context, self.context.records.record("step limit", stmt.site, [], describe), self.context.active(), []
        )


_CONTROL = (ir.If, ir.While, ir.For, ir.Frame, ir.Break, ir.Continue, ir.Return)


def _size(stmts: Sequence[ir.Stmt]) -> int:
    """Return the number of statements and operations at any depth."""
    return sum(1 + sum(isinstance(e, ir.Op) for e in expressions(s)) for s in statements(tuple(stmts)))


def _limit(stmt: ir.While | ir.For) -> str:
    """Return the register of the limit of iterations of the loop."""
    return "%.waiting" if waits(stmt) else "%.limit"
