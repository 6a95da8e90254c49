"""Reading of statement lists: errors are recorded, and reading continues with the next statement."""

import ast
from dataclasses import dataclass
from typing import Any

from ..ir import nodes as ir
from .constructs import construct_name
from .expressions import ExpressionReader
from .inference import Decided, IsWhole, StartsAsFloat
from .protocols import Progress
from .values import AlreadyReported, SourceError

_STATE = (
    "names", "types", "renamed", "registers", "assigned", "fixed", "numbers", "active", "ended", "positive", "soft", "unresolved",
    "launch_known", "bundles",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """A snapshot of a reader: variables, emitted statements, and recorded errors."""

    variables: dict[str, Any]
    emitted: int
    progress: Progress


class BlockReader(ExpressionReader):
    """Reader of the statement lists of one function."""

    def state(self) -> State:
        """Return a snapshot for `restore`."""
        variables = {name: getattr(self, name).copy() for name in _STATE}
        return State(variables, len(self.body), self.program.progress())

    def restore(self, state: State) -> None:
        for name, value in state.variables.items():
            setattr(self, name, value.copy())
        del self.body[state.emitted :]
        self.program.restore(state.progress)

    def read_function(self, nodes: list[ast.stmt]) -> bool:
        """Emit the statements of the function. Return whether control may run past their end."""
        before, body = self.state(), self.body
        while True:
            try:
                return self.read(nodes)
            except Decided as found:
                self.decided[found.name] = found.type
                if isinstance(found, StartsAsFloat):
                    self.floats[found.name] = found
            except IsWhole as found:
                self.whole.add(found.name)
                del self.floats[found.name], self.decided[found.name]
            self.body = body
            self.restore(before)
            for start in self.floats.values():
                self.program.report(start.error.span, start.error.message, *start.error.notes)

    def read(self, nodes: list[ast.stmt]) -> bool:
        """Emit the statements. Return whether control may run past their end."""
        falls_through = True
        for before, node in zip((None, *nodes), nodes, strict=False):
            if not falls_through:
                if before is not None and _leaves(before):  # a constant condition is no reason for an error
                    self.program.report(self.span(node), "this cannot be reached", "remove it")
                break
            try:
                falls_through = self.statement(node)
            except SourceError as error:
                self.refuse(error)
                self._mark_unresolved(node)
            except AlreadyReported:
                self._mark_unresolved(node)
        return falls_through

    def body_of(self, nodes: list[ast.stmt]) -> tuple[ir.Body, bool]:
        fixed = set(self.fixed)
        with self.block() as body:
            falls_through = self.read(nodes)
        self.fixed &= fixed  # names fixed inside may be unassigned outside
        return tuple(body), falls_through

    def _mark_unresolved(self, node: ast.stmt) -> None:
        """Mark the names assigned by an erroneous statement: their later uses are not reported."""
        self.unresolved |= stored([node]) - self.assigned - set(self.names)

    def statement(self, node: ast.stmt) -> bool:
        self.program.count(self.span(node))
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            word, advice = _STATEMENTS.get(type(node), (construct_name(node), ""))
            raise SourceError(self.span(node), f"{word} is not in the kernel language", *filter(None, [advice]))
        with self.nested(node):
            return method(node) is not False


def _leaves(node: ast.stmt) -> bool:
    """Return whether control never runs past a statement for any values of its conditions."""
    if isinstance(node, ast.If):
        return bool(node.orelse) and _leaves(node.body[-1]) and _leaves(node.orelse[-1])
    return isinstance(node, ast.Return | ast.Break | ast.Continue | ast.While)


def stored(nodes: list[ast.stmt]) -> set[str]:
    """Return the names assigned by statements, including loop variables."""
    inside = (n for node in nodes for n in ast.walk(node))
    return {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


_STATEMENTS: dict[type, tuple[str, str]] = {
    ast.FunctionDef: ("a nested function", "define it outside and mark it @st.device"),
    ast.ClassDef: ("a class", "define it outside of the kernel"),
    ast.Import: ("an import", "import at the top of the file"),
    ast.ImportFrom: ("an import", "import at the top of the file"),
    ast.Try: ("try", "a kernel cannot catch anything: test the condition with if"),
    ast.With: ("with", "write the statements one below the other"),
    ast.Raise: ("raise", "write assert condition, or store an error code in an array"),
    ast.Global: ("global", "pass a Global array of one element"),
    ast.Nonlocal: ("nonlocal", "pass a Global array of one element"),
    ast.Delete: ("del", "leave it out: variables end with the kernel"),
    ast.Match: ("match", "write if ... elif ... else"),
}
