"""Counted loops: `for` statements whose variable runs over a range that is fixed when the loop starts."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from ..language.types import Scalar
from .tree import Node, Variable, assigned

MAX_TRIPS = 64
"""Iterations up to which a loop is unrolled so that an array is in registers."""


@dataclass(frozen=True)
class CountedLoop:
    """variable: the counter. declared: whether the loop declares it. step: its sign and size; a node for a size known at run time.
    inclusive: whether the range contains `stop`."""

    variable: Variable
    declared: bool
    start: Node
    stop: Node
    sign: int
    step: Node | None
    inclusive: bool

    @property
    def constant_step(self) -> int | None:
        if self.step is None:
            return self.sign
        value = whole(self.step)
        return None if value is None else self.sign * value

    @property
    def trips(self) -> int | None:
        """The number of iterations, if constant."""
        start, stop, step = whole(self.start), whole(self.stop), self.constant_step
        if start is None or stop is None or not step:
            return None
        return len(range(start, stop + self.inclusive * (1 if step > 0 else -1), step))


def whole(node: Node) -> int | None:
    """Return the value of a constant expression of integers, without operators whose result could overflow."""
    if node.kind == "constant" and isinstance(node.value, int):
        return node.value
    if node.kind == "cast" and isinstance(node.type, Scalar) and node.type.is_integer:
        value = whole(node[0])
        low, high = node.type.range
        return value if value is not None and low <= value <= high else None
    if node.kind == "binary" and node.sign in ("+", "-", "*", "/"):
        a, b = whole(node[0]), whole(node[1])
        if a is None or b is None or (node.sign == "/" and (b <= 0 or a < 0)):
            return None
        result = a + b if node.sign == "+" else a - b if node.sign == "-" else a * b if node.sign == "*" else a // b
        assert isinstance(node.type, Scalar)
        return result if node.type.is_integer and node.type.range[0] <= result <= node.type.range[1] else None
    return None


def counted_loop(loop: Node) -> CountedLoop | None:
    """Return the range of a `for` statement; None if its body may change the counter or a bound, or for other forms."""
    first, test, step, body = loop.children
    if first is None or test is None or step is None or body is None:
        return None
    variable, start, declared = _begin(first)
    if variable is None or start is None or variable.reference or variable.place not in ("local", "parameter"):
        return None
    type = variable.type
    if not isinstance(type, Scalar) or not type.is_integer or type.size < 4:
        return None
    if test.kind != "binary" or test.sign not in ("<", "<=", ">", ">=") or _named(test[0]) is not variable:
        return None
    sign, size = _step(step, variable)
    if sign == 0 or (sign > 0) != (test.sign in ("<", "<=")) or test[0].type != type or test[1].type != type:
        return None
    if size is not None and ((amount := whole(size)) is None or amount <= 0) and not _is_positive(size):
        return None
    changed = set(assigned(body))
    if variable in changed or not all(
        is_fixed(bound, changed | {variable}) for bound in (test[1], size) if bound is not None
    ):
        return None
    return CountedLoop(variable, declared, start, test[1], sign, size, test.sign in ("<=", ">="))


def _begin(first: Node) -> tuple[Variable | None, Node | None, bool]:
    if first.kind == "block" and len(first.children) == 1 and (declared := first[0].variable) is not None:
        return declared, declared.initial, True
    if first.kind == "assign" and not first.sign and first[0].kind == "name":
        return first[0].variable, first[1], False
    return None, None, False


def _named(node: Node) -> Variable | None:
    return node.variable if node.kind == "name" else None


def _step(step: Node, variable: Variable) -> tuple[int, Node | None]:
    """Return the sign of a step, 0 for others, and its size; None for 1."""
    if step.kind == "unary" and _named(step[0]) is variable:
        return {"x++": 1, "++x": 1, "x--": -1, "--x": -1}.get(step.sign, 0), None
    if step.kind == "assign" and _named(step[0]) is variable:
        if step.sign in ("+", "-"):
            return (1 if step.sign == "+" else -1), step[1]
        value = step[1]  # i = i + s
        if not step.sign and value.kind == "binary" and value.sign in ("+", "-") and _named(value[0]) is variable:
            return (1 if value.sign == "+" else -1), value[1]
    return 0, None


def _is_positive(node: Node) -> bool:
    """Return whether a size is never negative nor zero: extents of block and grid, and products of them."""
    if node.kind == "cast":
        return _is_positive(node[0])
    if node.kind == "binary" and node.sign in ("*", "+"):
        return _is_positive(node[0]) and _is_positive(node[1])
    if node.kind == "field" and node.children[0] is not None and (owner := node[0].variable) is not None:
        return owner.place == "index" and owner.name in ("blockDim", "gridDim")
    return (whole(node) or 0) > 0


def is_fixed(node: Node, changed: Set[Variable]) -> bool:
    """Return whether an expression has the same value while none of its variables is among those that change."""
    if node.kind == "name":
        variable = node.variable
        return (
            variable is not None
            and variable not in changed
            and variable.place in ("local", "parameter")
            and not variable.reference
        )
    if node.kind == "field" and node.children[0] is not None:
        owner = node[0].variable
        return owner is not None and owner.place == "index"
    if node.kind in ("cast", "binary") or (node.kind == "unary" and node.sign in ("-", "+", "~")):
        return isinstance(node.type, Scalar) and all(is_fixed(child, changed) for child in node.present)
    return node.kind == "constant"


def jumps(node: Node, in_switch: bool = False) -> bool:
    """Return whether a body has a break or a continue of its loop."""
    if node.kind == "continue" or (node.kind == "break" and not in_switch):
        return True
    if node.kind in ("for", "while", "do"):
        return False
    if node.kind in ("block", "if", "switch"):
        return any(jumps(child, in_switch or node.kind == "switch") for child in node.present)
    return False


def loop_counters(body: Node) -> set[Variable]:
    """Return the variables that are only used inside `for` statements that assign them first: their last value is not used."""
    heads = [
        entry
        for entry in body.walk()
        if entry.kind == "for" and (first := entry.children[0]) is not None and first.kind == "assign"
    ]
    result = set()
    for variable in {_named(entry[0][0]) for entry in heads} - {None}:
        inside = {
            id(name)
            for entry in heads
            if _named(entry[0][0]) is variable
            for name in entry.walk()
            if name.kind == "name"
        }
        names = [entry for entry in body.walk() if entry.kind == "name" and entry.variable is variable]
        if variable is not None and all(id(name) in inside for name in names):
            result.add(variable)
    return result
