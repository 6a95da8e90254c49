"""Statements of the IR for structured statements: blocks, moves of registers, flags, branches and loops."""

from collections.abc import Callable, Mapping

from .. import source_text
from ..ir import nodes as ir
from ..ir.walk import registers
from ..language.types import BOOL, I32, Scalar
from ..span import Span
from .arithmetic import constant, negated, operation
from .emitting import Emitter
from .graph import Graph
from .module import Instruction
from .structure import Choose, Clear, Finish, Guard, Leave, Mark, Move, Repeat, Run, Tree
from .values import Values


class TreeEmitter:
    """run: translates an instruction in a block. raised: message and position of each returned code that has a meaning.

    decided: blocks whose condition is constant.
    """

    def __init__(
        self,
        graph: Graph,
        emitter: Emitter,
        values: Values,
        run: Callable[[Instruction, str], None],
        span_of: Callable[[Instruction], Span],
        raised: Mapping[int, tuple[str, Span]],
    ) -> None:
        self.graph, self.emitter, self.values = graph, emitter, values
        self.run, self.span_of, self.raised = run, span_of, raised
        self.flags: dict[str, ir.Reg] = {}
        self.decided: dict[str, bool] = {}

    def body(self, tree: Tree) -> ir.Body:
        """Return the statements of a tree."""
        with self.emitter.block() as body:
            for statement in tree:
                self.statement(statement)
        return tuple(body)

    def statement(self, statement: object) -> None:
        emitter = self.emitter
        match statement:
            case Run(block):
                node = self.graph.nodes[block]
                for instruction in node.body:
                    self.run(instruction, block)
                self.place(node.end)
            case Move(source, target):
                self.move(source, target)
            case Clear(targets):
                for target in targets:
                    emitter.assign(self.flag(target), constant(False, BOOL, emitter.span))
            case Mark(target, unless):
                emitter.assign(self.flag(target), self.none_of(unless))
            case Guard(target, body):
                self.branch(self.flag(target), self.body(body), ())
            case Choose(block, then, orelse):
                condition = self.condition(block)
                self.branch(condition, self.body(then), self.body(orelse))
            case Repeat():
                self.loop(statement)
            case Leave(again):
                emitter.emit(ir.Continue(emitter.span) if again else ir.Break(emitter.span))
            case Finish(block):
                self.finish(block)

    def place(self, end: Instruction) -> None:
        """Take the position of a block's end, such as a return statement. One without a position and a closing brace are no
        statements: what follows has the position before them."""
        span = self.span_of(end)
        if end.position >= 0 and source_text.line(span.file, span.line)[span.column - 1 : span.column] != "}":
            self.emitter.span = span

    # -------------------------------------------------------------- registers
    def move(self, source: str, target: str) -> None:
        """Assign the registers of a block's phis, all at once."""
        emitter = self.emitter
        emitter.span = self.span_of(self.graph.nodes[source].end)
        moves = [
            (r, v) for r, v in self.values.moves(source, target) if not (isinstance(v, ir.Reg) and v.name == r.name)
        ]
        written = {register.name for register, _ in moves}
        reads = [{read.name for read in _registers(value)} - {register.name} for register, value in moves]
        if any(names & written for names in reads):
            copies = []
            for register, value in moves:
                assert isinstance(register.type, Scalar)
                copy = emitter.register(register.name.partition("@")[0], register.type)
                emitter.assign(copy, value)
                copies.append((register, copy))
            moves = list(copies)
        for register, value in moves:
            emitter.assign(register, value)

    def flag(self, target: str) -> ir.Reg:
        if target not in self.flags:
            self.flags[target] = self.emitter.register("jump", BOOL)
        return self.flags[target]

    def none_of(self, targets: tuple[str, ...]) -> ir.Expr:
        result: ir.Expr = constant(True, BOOL, self.emitter.span)
        for number, target in enumerate(targets):
            flag = negated(self.flag(target))
            result = operation("both", result, flag) if number else flag
        return result

    # -------------------------------------------------------------- control
    def condition(self, block: str) -> ir.Expr:
        """Return the condition of a block's branch. The position is that of the branch."""
        node = self.graph.nodes[block]
        self.emitter.span = self.span_of(node.end)
        condition = self.values.expr(node.condition)
        if isinstance(condition, ir.Const):
            self.decided[block] = bool(condition.value)
        return condition

    def branch(self, condition: ir.Expr, then: ir.Body, orelse: ir.Body) -> None:
        if not then and not orelse:
            return
        span = condition.span if isinstance(condition, ir.Op) else self.emitter.span
        if then:
            self.emitter.emit(ir.If(condition, then, orelse, span))
        else:
            self.emitter.emit(ir.If(negated(condition), orelse, (), span))

    def loop(self, loop: Repeat) -> None:
        span = self.span_of(self.graph.nodes[loop.header].end)
        setup = self.body(loop.setup)
        condition: ir.Expr = constant(True, BOOL, span)
        if loop.test:
            condition = self.condition(loop.header)
            condition = condition if loop.holds else negated(condition)
        body = self.body(loop.body)
        self.emitter.emit(ir.While(setup, condition, body, span))

    def finish(self, block: str) -> None:
        """Return from the kernel. A returned code with a message is a failed assertion."""
        end = self.graph.nodes[block].end
        self.place(end)
        span = self.emitter.span
        if self.raised and end.operands:
            code = self.emitter.let(self.values.expr(end.operands[0]), "code")
            for number, (message, place) in self.raised.items():
                if isinstance(code, ir.Const):
                    holds: ir.Expr = constant(int(code.value) != number, BOOL, place)
                else:
                    holds = operation("ne", code, constant(number, I32, place))
                if not (isinstance(holds, ir.Const) and holds.value):
                    self.emitter.emit(ir.Assert(holds, message, place))
        self.emitter.emit(ir.Return(None, span))


def _registers(value: ir.Expr) -> list[ir.Reg]:
    return [value] if isinstance(value, ir.Reg) else list(registers(value))
