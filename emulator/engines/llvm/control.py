"""Statements of one warp between barriers: straight lines, branches, loops, frames, under masks.

A divergent region is printed twice where that pays: for warps that are there as a whole, without masks, and for
the rest. Counting is by stretches of plain statements, as everybody who begins one runs all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.exits import exits
from ...ir.walk import expressions, statements
from ...language.types import BOOL, Scalar
from ...profiler import events
from ...runtime.engine import Request
from ...sanitizer import barriers, checkers
from . import warp
from .builder import FULL, many, scalar_type
from .context import Build
from .fault_records import Number, Telling, note
from .masks import Scope, Scopes
from .memory import access
from .operations import operation
from .races import tracking
from .values import Value, Values, bits, lanes, number, one_lane

TWICE_FROM = 4
"""Expressions and statements in a region that make a second text worth while."""
TWICE_DEPTH = 3
"""How deep regions printed twice may nest in each other."""


class Statements:
    """Prints statements on the build's page."""

    def __init__(self, build: Build, scopes: Scopes) -> None:
        self.build, self.page, self.scopes = build, build.page, scopes
        self.depth = 0

    def body(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Print a statement list; whether control runs past its end."""
        for at, stmt in enumerate(stmts):
            if at == 0 or self.may_leave(stmts[at - 1]):
                self.line(self._counted(stmts[at:]))
                executions = self.build.executions
            self.comment(stmt)
            if not isinstance(stmt, _CONTROL):
                self.plain(stmt)
                continue
            if not self.control(stmt):
                return False
            self.build.executions = executions
            rest = stmts[at + 1 :]
            if rest and self.scopes.scatters([stmt]):
                here = self.page.load("i32", self.scopes.innermost(), "here")
                left = self.page.let(f"and i32 {here}, {self.build.active()}", "here")
                self.versions(left, rest, lambda rest=rest: self.body(rest))  # type: ignore[misc]
                return True
        return True

    def _counted(self, stmts: Sequence[ir.Stmt]) -> list[int]:
        """Sites that everybody executes who executes the first one: until somebody may leave."""
        sites = []
        for stmt in stmts:
            uncounted = isinstance(stmt, ir.While | ir.For | ir.Frame) or not self.build.prepared.counts(stmt)
            if not uncounted:  # loops count their tests, frames nothing
                sites.append(stmt.site)
            if self.may_leave(stmt):
                break
        return sites

    def may_leave(self, stmt: ir.Stmt) -> bool:
        """Whether lanes may leave something around the statement."""
        return any(exits(stmt)) or self.scopes.scatters([stmt])

    def versions(self, mask: str, stmts: Sequence[ir.Stmt], body: Callable[[], bool]) -> None:
        """Print a region for the lanes of a mask: for whole warps and for others, or once for both; not for none."""
        page, build, outer = self.page, self.build, self.build.mask
        done, some = page.label("done"), page.label("some")
        if outer is None and self.depth < TWICE_DEPTH and weight(stmts) >= TWICE_FROM:
            whole, part = page.label("whole"), page.label("part")
            page.branch(page.let(f"icmp eq i32 {mask}, {FULL}", "full"), whole, part)
            page.place(whole)
            self.depth += 1
            if body():
                page.jump(done)
            self.depth -= 1
            page.place(part)
        page.branch(page.let(f"icmp eq i32 {mask}, 0", "none"), done, some)
        page.place(some)
        build.mask = mask
        if body():
            page.jump(done)
        build.mask = outer
        page.place(done)

    def comment(self, stmt: ir.Stmt) -> None:
        span = stmt.value.span if isinstance(stmt, ir.Let) else stmt.span
        self.page.comment(f"{span.name.rpartition('/')[2]}:{span.line}: {span.text}")

    # -------------------------------------------------------------- counting
    def line(self, sites: Sequence[int]) -> None:
        """Count an execution of statements."""
        build = self.build
        if not build.options.counters or not sites:
            return
        if build.mask is None:
            build.executions = build.tally.full(sites)
        else:
            build.executions, lanes_slot = build.tally.partial(sites)
            build.count(lanes_slot, build.population(build.mask))
        build.count(build.executions)

    def count_divergence(self, site: int, taken: str) -> None:
        """Count a test whose lanes disagree; `taken`: those for which it holds."""
        if not self.build.options.counters:
            return
        page = self.page
        some = page.let(f"icmp ne i32 {taken}, 0", "some")
        less = page.let(f"icmp ne i32 {taken}, {self.build.active()}", "less")
        divergent = page.let(f"zext i1 {page.let(f'and i1 {some}, {less}', 'divergent')} to i64", "divergent")
        self.build.count(self.build.tally.counter(site, events.DIVERGENT), divergent)

    # -------------------------------------------------------------- plain statements
    def plain(self, stmt: ir.Stmt) -> None:
        kind = self.build.prepared.sites[stmt.site].kind if self.build.prepared.counts(stmt) else ""
        match stmt:
            case ir.Let():
                value = self.right_side(stmt, kind)
                if isinstance(stmt.target, ir.Reg):
                    assert value is not None
                    complete = stmt.site in self.build.divergence.complete
                    self.build.registers.assign(stmt.target.name, value, None if complete else self.build.mask)
            case ir.Store():
                access.store(self.build, stmt, kind)
            case ir.WarpBarrier():
                warp.syncwarp(self.build, stmt)
            case ir.Fence():
                scope = {"block": 1, "device": 2}[stmt.scope]
                tracking.happens(self.build, "fence", ("i32", self.build.active()), ("i32", str(scope)))
            case ir.Assert():
                self.assertion(stmt)
            case ir.Check():
                self.check(stmt)
            case ir.Print():
                self.printing(stmt)
        # Allocations are made before the kernel starts.

    def right_side(self, stmt: ir.Let, kind: str) -> Values | None:
        node, build = stmt.value, self.build
        match node:
            case ir.Load():
                return access.load(build, node, kind, stmt.site)
            case ir.Atomic() | ir.CompareSwap():
                return access.atomic(build, node, kind, stmt.site)
            case ir.Shuffle():
                return warp.shuffle(build, node, stmt.site)
            case ir.Vote():
                return warp.vote(build, node, stmt.site)
        assert not isinstance(node, ir.Call | ir.Barrier)
        values = build.values(node)
        return values[0] if isinstance(node.type, Scalar) else values

    def assertion(self, stmt: ir.Assert) -> None:
        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            return barriers.failed(stmt.span, place, stmt.message)

        self.expect("assertion", stmt, (), tell)

    def check(self, stmt: ir.Check) -> None:
        kernel = self.build.kernel

        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            return checkers.describe(stmt, kernel, found, place)

        self.expect(stmt.about, stmt, stmt.shown, tell)

    def expect(self, kind: str, stmt: ir.Assert | ir.Check, shown: Sequence[ir.Expr], tell: Telling) -> None:
        """A fault of the lanes for which a condition does not hold; it shows the first one's values."""
        page, build = self.page, self.build
        holds = bits(page, build.expression(stmt.cond))
        failed = page.let(f"and i32 {page.let(f'xor i32 {holds}, -1', 'fails')}, {build.active()}", "failed")
        bad, good = page.label("fails"), page.label("holds")
        page.branch(page.let(f"icmp eq i32 {failed}, 0", "good"), good, bad, rarely=True)
        page.place(bad)
        types = [e.type for e in shown if isinstance(e.type, Scalar)]
        record = build.records.record(kind, stmt.site, types, tell)
        note(build, record, failed, [build.expression(e) for e in shown])
        page.jump(good)
        page.place(good)

    def printing(self, stmt: ir.Print) -> None:
        """Hand the lanes' values to Python."""
        page, build = self.page, self.build
        values = [build.expression(p) for p in stmt.parts if not isinstance(p, str)]
        buffer = page.slot(f"[{256 * max(1, len(values))} x i8]", "printed")
        for number_, value in enumerate(values):
            ref, type = lanes(page, value), many(scalar_type(value.type))
            if value.type is BOOL:
                ref, type = page.let(f"zext {type} {ref} to {many('i8')}", "byte"), many("i8")
            page.store(type, ref, page.element("i8", buffer, 256 * number_))
        build.ask(build.outside.printing(stmt), build.active(), buffer)

    # -------------------------------------------------------------- control
    def control(self, stmt: ir.Stmt) -> bool:
        """Print a control statement; whether control runs past it."""
        match stmt:
            case ir.If():
                return self.branch(stmt)
            case ir.While() | ir.For():
                return self.loop(stmt)
            case ir.Frame():
                return self.frame(stmt)
            case ir.Break() | ir.Continue() | ir.Return():
                if not self.scopes.directly(stmt):
                    self.scopes.leave(stmt)
                    return True
                aim = self.scopes.target(stmt)
                self.page.jump(aim.next if isinstance(stmt, ir.Continue) else aim.done)
                return False
        raise TypeError(f"{type(stmt).__name__} cannot stand between barriers")

    def branch(self, stmt: ir.If) -> bool:
        page, build = self.page, self.build
        condition = build.expression(stmt.cond)
        if not condition.uniform:
            taken = page.let(f"and i32 {bits(page, condition)}, {build.active()}", "taken")
            rest = page.let(f"xor i32 {taken}, {build.active()}", "rest")
            self.count_divergence(stmt.site, taken)
            self.versions(taken, stmt.then, lambda: self.body(stmt.then))
            if stmt.orelse:
                self.versions(rest, stmt.orelse, lambda: self.body(stmt.orelse))
            return True
        then, orelse, done = page.label("then"), page.label("else"), page.label("endif")
        page.branch(condition.ref, then, orelse)
        falls = False
        for label, arm in ((then, stmt.then), (orelse, stmt.orelse)):
            page.place(label)
            if self.body(arm):
                page.jump(done)
                falls = True
        if falls:
            page.place(done)
        return falls

    def frame(self, stmt: ir.Frame) -> bool:
        page = self.page
        scope = Scope("frame", page.slot("i32", "in.call"), done=page.label("returned"))
        assert scope.here is not None
        page.store("i32", self.build.active(), scope.here)
        self.scopes.stack.append(scope)
        if self.body(stmt.body):
            page.jump(scope.done)
        self.scopes.stack.pop()
        page.place(scope.done)
        return True

    # -------------------------------------------------------------- loops
    def loop(self, stmt: ir.While | ir.For) -> bool:
        page, build = self.page, self.build
        done, following = page.label("loop.done"), page.label("loop.next")
        scope = Scope("loop", None, None, done, following)
        self.begin(stmt)
        turns = page.slot("i64", "turns")
        page.store("i64", "0", turns)
        self.scopes.stack.append(scope)
        if stmt.site in build.divergence.divergent_loops or self.scopes.scatters(stmt.body) or build.options.careful:
            scope.here, scope.stay = page.slot("i32", "in.turn"), page.slot("i32", "in.loop")
            self.scattered(stmt, scope, turns)
        else:
            self.together(stmt, scope, turns)
        self.scopes.stack.pop()
        page.place(done)
        return True

    def begin(self, stmt: ir.While | ir.For) -> None:
        if isinstance(stmt, ir.For):
            self.build.registers.assign(stmt.var.name, self.build.expression(stmt.start), None)

    def advance(self, stmt: ir.While | ir.For) -> None:
        if isinstance(stmt, ir.For):
            assert isinstance(stmt.var.type, Scalar)
            step = number(stmt.step, stmt.var.type)
            moved = ir.Op("add", (stmt.var, stmt.var), stmt.var.type, stmt.span)
            now = self.build.read(stmt.var)
            assert isinstance(now, Value)
            self.build.registers.assign(stmt.var.name, operation(self.build, moved, [now, step]), None)

    def test(self, stmt: ir.While | ir.For) -> Value:
        """Run what comes before the test, and give its condition."""
        if isinstance(stmt, ir.While):
            self.body(stmt.setup)
            return self.build.expression(stmt.cond)
        word = "lt" if stmt.step > 0 else "gt"
        now = self.build.read(stmt.var)
        assert isinstance(now, Value)
        compared = ir.Op(word, (stmt.var, stmt.stop), BOOL, stmt.span)
        return operation(self.build, compared, [now, self.build.expression(stmt.stop)])

    def together(self, stmt: ir.While | ir.For, scope: Scope, turns: str) -> None:
        """A loop whose lanes take every turn together."""
        page = self.page
        head, turn = page.label("loop"), page.label("turn")
        page.jump(head)
        page.place(head)
        condition = self.test(stmt)
        self.line([stmt.site])
        page.branch(
            one_lane(page, condition, "0"), turn, scope.done
        )  # another loop may have made the variable a vector
        page.place(turn)
        self.limit(stmt, turns, scope)
        if self.body(stmt.body):
            page.jump(scope.next)
        page.place(scope.next)
        self.advance(stmt)
        page.jump(head)

    def scattered(self, stmt: ir.While | ir.For, scope: Scope, turns: str) -> None:
        """A loop that lanes leave one by one."""
        page, build, outer = self.page, self.build, self.build.mask
        assert scope.here is not None and scope.stay is not None
        twice = outer is None and self.depth < TWICE_DEPTH
        page.store("i32", build.active(), scope.stay)
        page.store("i32", build.active(), scope.here)
        head, whole, part, whole_turn, part_turn = (
            page.label(hint) for hint in ("loop", "whole", "part", "whole.turn", "part.turn")
        )
        page.jump(head)
        page.place(head)
        going = page.load("i32", scope.stay, "going")
        if twice:
            page.branch(page.let(f"icmp eq i32 {going}, {FULL}", "full"), whole, part)
            self.depth += 1
            page.place(whole)
            self.split(stmt, scope, whole_turn, part_turn)
            page.place(whole_turn)
            self.turn(stmt, scope, turns)
            self.depth -= 1
        else:
            page.jump(part)
        page.place(part)
        build.mask = going
        self.split(stmt, scope, part_turn, part_turn)
        page.place(part_turn)
        build.mask = page.load("i32", scope.here, "here")
        self.turn(stmt, scope, turns)
        build.mask = outer
        page.place(scope.next)
        stay = page.load("i32", scope.stay, "stay")
        again = page.label("again")
        page.branch(page.let(f"icmp eq i32 {stay}, 0", "nobody"), scope.done, again)
        page.place(again)
        self.advance(stmt)
        page.jump(head)

    def split(self, stmt: ir.While | ir.For, scope: Scope, whole: str, part: str) -> None:
        """Test, and go to the turn that fits who takes it, or end the loop."""
        page = self.page
        condition = self.test(stmt)
        holds = bits(page, condition)
        taken = page.let(f"and i32 {holds}, {self.build.active()}", "taken")
        self.line([stmt.site])
        if not condition.uniform:
            self.count_divergence(stmt.site, taken)
        assert scope.here is not None and scope.stay is not None
        page.store("i32", taken, scope.stay)
        page.store("i32", taken, scope.here)
        some = page.label("some")
        page.branch(page.let(f"icmp eq i32 {taken}, 0", "none"), scope.done, some)
        page.place(some)
        if whole != part:
            page.branch(page.let(f"icmp eq i32 {taken}, {FULL}", "full"), whole, part)
        else:
            page.jump(part)

    def turn(self, stmt: ir.While | ir.For, scope: Scope, turns: str) -> None:
        self.limit(stmt, turns, scope)
        if self.body(stmt.body):
            self.page.jump(scope.next)

    def limit(self, stmt: ir.While | ir.For, turns: str, scope: Scope) -> None:
        """Count the turn; cut the loop off where it has taken too many."""
        page = self.page
        taken = page.load("i64", turns, "turns")
        cut, go = page.label("cut.off"), page.label("go")
        page.branch(page.let(f"icmp ne i64 {taken}, %.limit", "more"), go, cut, rarely=True)
        page.place(cut)
        if self.build.options.careful:
            self.cut_off(stmt)
            self.scopes.kill()
            page.jump(scope.done)
        else:
            page.do("ret i32 1")  # survivors need masks everywhere: start again with careful text
        page.place(go)
        page.store("i64", page.let(f"add i64 {taken}, 1", "turns"), turns)

    def cut_off(self, stmt: ir.While | ir.For) -> None:
        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            return barriers.endless(stmt.span, place, request.step_limit)

        note(self.build, self.build.records.record("step limit", stmt.site, [], tell), self.build.active(), [])


_CONTROL = (ir.If, ir.While, ir.For, ir.Frame, ir.Break, ir.Continue, ir.Return)


def weight(stmts: Sequence[ir.Stmt]) -> int:
    """Statements and operations, at any depth."""
    return sum(1 + sum(isinstance(e, ir.Op) for e in expressions(s)) for s in statements(tuple(stmts)))
