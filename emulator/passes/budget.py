"""Limits on a kernel's size: statements once calls are inlined and loops unrolled, and memory of a thread.

Each limit is checked before the expansion, so that an oversized kernel is refused at once, with the line that exceeds the limit.
"""

from collections import Counter
from typing import NoReturn

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.limits import DEEPEST_CALLS, MOST_OF_COMPILERS, MOST_STATEMENTS, array_size, over_capacity
from ..ir.walk import bodies, statements
from ..span import Span


def refuse(span: Span, message: str, advice: str) -> NoReturn:
    raise CompileError([Diagnostic("compile", message, span, (advice,))])


def check_calls(program: ir.Program) -> None:
    """Refuse a program with too many statements after inlining. Callees precede their callers."""
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    most = MOST_STATEMENTS if program.functions else MOST_OF_COMPILERS
    for function in (*program.functions, program.kernel):
        size = depth = 0
        for stmt in statements(function.body):
            size += 1
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Call):
                callee = stmt.value.function
                size += sizes[callee]
                depth = max(depth, 1 + depths[callee])
                if depth > DEEPEST_CALLS:
                    message = f"calls nest {depth} deep here, at most {DEEPEST_CALLS} do"
                    refuse(stmt.value.span, message, "write what the innermost functions do in their callers")
            if size > most:
                too_long(stmt.span, size, "up to here", most)
        sizes[function.name], depths[function.name] = size, depth


def check_memory(kernel: ir.Function) -> None:
    """Refuse arrays with a total above the memory of a thread. Each of them is within the limit."""
    counted: Counter[str] = Counter()
    for stmt in {s.array: s for s in statements(kernel.body) if isinstance(s, ir.Alloc)}.values():
        counted[stmt.type.space] += array_size(stmt.type)
        excess = over_capacity(stmt.type.space, counted[stmt.type.space])
        if excess is not None:
            refuse(stmt.span, *excess)


def check_loops(body: ir.Body) -> int:
    """Return a lower bound on the statements of a body with unrolled loops: bounds that depend on other unrolled loops are
    unknown here. Refuses a loop that is too long."""
    size = 0
    for stmt in body:
        inner = sum(check_loops(part) for part in bodies(stmt))
        if isinstance(stmt, ir.For) and stmt.unroll:
            if isinstance(stmt.start, ir.Const) and isinstance(stmt.stop, ir.Const) and isinstance(stmt.step, int):
                inner = max(inner, 1) * trips(int(stmt.start.value), int(stmt.stop.value), stmt.step)
            if inner > MOST_STATEMENTS:
                too_long(stmt.span, inner, "by this unrolled loop")
        size += 1 + inner
    return size


def trips(start: int, stop: int, step: int) -> int:
    """Iterations of a loop."""
    return max(0, -((start - stop) // step))


def too_long(span: Span, size: int, reason: str, most: int = MOST_STATEMENTS) -> NoReturn:
    message = f"the kernel has at least {size:,} statements {reason}, at most {most:,} are compiled"
    refuse(span, message, "use a plain range(...) for a loop, and call a function in a loop instead of many times")
