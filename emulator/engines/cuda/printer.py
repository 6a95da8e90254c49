"""Printing of a program as readable CUDA C++, each line with its place in the user's source."""

import os
import re
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...ir import counting
from ...ir import nodes as ir
from ...ir.effects import TABLE
from ...ir.halves import widened
from ...ir.names import CONVERSION
from ...ir.walk import same, statements
from ...ir.wide import widest_accesses
from ...language.types import BF16, BOOL, F16, HALVES, Array, Results
from ...passes.grids import has_clusters, is_cooperative
from ...runtime.engine import Dim3, Maths
from ...span import Span
from . import calls
from .declarations import places
from .expressions import Common, Expressions, format_of, quoted
from .fold import Update, fold, nodes
from .interface import Interface, Tensors
from .names import Names
from .operators import ANY, INFIX, Called, helper, infix, literal, type_name
from .portable import with_library
from .shared_memory import alignment, carved_bytes, declarations

WIDTH = 120
INDENT = "    "


@dataclass(frozen=True)
class Line:
    text: str
    span: Span | None = None


@dataclass(frozen=True)
class Source:
    """A printed program. shared: the kernel's shared arrays. The other fields are those of Interface."""

    lines: tuple[Line, ...]
    kernel: str
    arguments: tuple[str, ...]
    lengths: tuple[str, ...]
    written: frozenset[str]
    shared: tuple[ir.Alloc, ...]
    carved_bytes: int
    cooperative: bool
    tensors: Tensors

    @property
    def interface(self) -> Interface:
        """The call interface, without the text."""
        facts = self.lengths, self.written, self.carved_bytes, self.cooperative
        return Interface(self.kernel, self.arguments, *facts, tensors=self.tensors)

    @property
    def text(self) -> str:
        """The text without `#line`, independent of the path of the user's source."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def with_lines(self) -> str:
        """Return the text with `#line` at each change of place, so that nvcc and profilers refer to the user's source."""
        text, expected = [], None
        for line in self.lines:
            place = None if line.span is None or not line.span.line else (line_table_file(line.span), line.span.line)
            if place is not None and place != expected:
                text.append(f"#line {place[1]} {quoted(place[0])}\n")
                expected = place
            text.append(f"{line.text}\n")
            expected = expected and (expected[0], expected[1] + 1)
        return "".join(text)


ONE_BLOCK: Dim3 = (1, 1, 1)
"""The cluster of a launch without clusters."""


def line_table_file(span: Span) -> str:
    """Return the name of a position's file in line tables. nvcc would complete a relative one by its own folder."""
    return os.path.abspath(span.file)


def cuda_source(program: ir.Program, block: Dim3, maths: Maths = "native", cluster: Dim3 = ONE_BLOCK) -> Source:
    """Print a program of the front end, with calls and unrolled loops, for blocks of exactly `block` threads, in clusters
    of `cluster` blocks.
    Cached for the lifetime of the program.

    maths: "native" for CUDA's mathematical functions, "portable" for those of the emulators, as device functions.
    """
    printed = _PRINTED.setdefault(program, {})
    if (block, maths, cluster) not in printed:
        printed[block, maths, cluster] = _printed(program, block, maths, cluster)
    return printed[block, maths, cluster]


_PRINTED: weakref.WeakKeyDictionary[ir.Program, dict[tuple[Dim3, Maths, Dim3], Source]] = weakref.WeakKeyDictionary()


def _printed(program: ir.Program, block: Dim3, maths: Maths, cluster: Dim3) -> Source:
    library: dict[str, str] = {}
    if maths == "portable":
        program, library = with_library(program)
    whole = calls.lift_shared(calls.plain(program))
    functions = tuple(fold(f) for f in whole.functions)
    written = calls.written(whole.functions)
    lengths = calls.lengths(whole.functions, whole.shared)
    scope = Names()
    signatures: dict[str, tuple[str, tuple[int, ...]]] = {}
    for function in functions:
        positions = [p.name for p in function.params]
        measured = () if function is functions[-1] else tuple(positions.index(a) for a in lengths[function.name])
        signatures[function.name] = scope.new(function.name), measured
    allocations = [(f, s) for f in functions for s in statements(f.body) if isinstance(s, ir.Alloc)]
    tables = [(f, alloc) for f, alloc in allocations if alloc.type.space == "constant"]
    constants = {(f.name, table.array): scope.new(table.array) for f, table in tables}

    widest = widest_accesses(program.kernel)
    lines = list(_header(functions, block))
    for function, table in tables:
        lines += [_table(table, constants[function.name, table.array], widest.get(table.array, 0)), Line("")]
    structs: dict[Results, str] = {}
    for function in functions:
        if isinstance(function.result, Results) and function.result not in structs:
            structs[function.result] = scope.new(f"{function.name}_result")
    for results, name in structs.items():
        items = (f"{type_name(item)} item{n};" for n, item in enumerate(results.items))
        lines += [Line(f"struct {name} {{"), *(Line(f"{INDENT}{item}") for item in items), Line("};"), Line("")]
    cooperative = any(map(is_cooperative, functions))
    together = cooperative or any(map(has_clusters, functions))
    common = Common(signatures, scope, block, structs, together, widest, library, cluster)
    for function in functions:
        own = {array: name for (owner, array), name in constants.items() if owner == function.name}
        shared = whole.shared if function is functions[-1] else ()
        printer = _Function(function, own, shared, written[function.name], lengths[function.name], common)
        lines += [*printer.lines(), Line("")]
    kernel = whole.kernel
    arrays = {p.name for p in kernel.params if isinstance(p.type, Array)}
    return Source(
        tuple(wrapped for line in lines[:-1] for wrapped in _wrapped(line)),
        signatures[kernel.name][0],
        tuple(p.name for p in kernel.params),
        lengths[kernel.name],
        frozenset(written[kernel.name] & arrays),
        whole.shared,
        carved_bytes(whole.shared, alignment(widest)),
        cooperative,
        _tensors(kernel),
    )


def _tensors(kernel: ir.Function) -> Tensors:
    copies = {s.tensor.name: s.form for s in statements(kernel.body) if isinstance(s, ir.TensorCopy)}
    return tuple(copies.items())


def _header(functions: tuple[ir.Function, ...], block: Dim3) -> Iterator[Line]:
    threads = " x ".join(str(n) for n in block if n > 1) or "1"
    yield Line(f"// {functions[-1].name}, for blocks of {threads} threads")
    body = [s for f in functions for s in statements(f.body)]
    kinds = {type(stmt) for stmt in body}
    kinds |= {ir.Print for stmt in body if isinstance(stmt, ir.Assert) and stmt.items}
    headers = ((ir.Assert, "cassert"), (ir.Print, "cstdio"), (ir.TensorCopy, "cuda.h"))
    includes = [name for kind, name in headers if kind in kinds]
    if any(map(is_cooperative, functions)):
        includes.append("cooperative_groups.h")
    if any(isinstance(stmt, ir.AsyncWait) or getattr(stmt, "order", "") == "async" for stmt in body):
        includes.append("cuda_pipeline.h")
    scalars = calls.scalars(functions)
    includes += [header for type, header in ((F16, "cuda_fp16.h"), (BF16, "cuda_bf16.h")) if type in scalars]
    if includes:
        yield Line("")
        yield from (Line(f"#include <{name}>") for name in includes)
    yield Line("")
    called = [n for s in body for n in (s, *nodes(s)) if isinstance(n, Called)]
    for _, text in sorted({own for n in called if (own := helper(n)) is not None}):
        yield from map(Line, text.splitlines())
        yield Line("")


def _table(alloc: ir.Alloc, name: str, widest: int) -> Line:
    element = alloc.type.element
    head = f"__constant__ {f'__align__({widest}) ' if widest else ''}{type_name(element)} {name}[{alloc.type.length}]"
    if element in HALVES:  # C++ runs no function to initialise constant memory
        bits = np.array(alloc.values, element.dtype).view(np.uint16)
        values = ", ".join(f"{type_name(element)}_raw{{{int(n):#06x}}}" for n in bits)
        return Line(f"{head} = {{{values}}};", alloc.span)
    values = ", ".join(literal(ir.Const(v, element, alloc.span)).text for v in alloc.values)  # type: ignore[arg-type]
    return Line(f"{head} = {{{values}}};", alloc.span)


class _Function:
    """Prints one function."""

    def __init__(
        self,
        function: ir.Function,
        constants: dict[str, str],
        shared: tuple[ir.Alloc, ...],
        written: set[str],
        lengths: tuple[str, ...],
        common: Common,
    ) -> None:
        self.cluster = common.cluster
        self.cooperative, self.tensors = common.cooperative, dict(_tensors(function))
        self.function, self.shared, self.written, self.block = function, shared, written, common.block
        signatures = common.signatures
        self.kernel = function.name == list(signatures)[-1]
        self.scope = Names(common.scope)
        self.types: dict[str, Any] = calls.names(function) | {a.array: a.type for a in shared}
        own = [n for n in self.types if n not in constants]
        # The user's names first: a generated one must not take them.
        names = constants | {n: self.scope.new(n) for n in sorted(own, key=lambda n: "@" in n)}
        self.lengths = {array: self.scope.new(f"{array}_length") for array in lengths}
        arrays = {n: t for n, t in self.types.items() if isinstance(t, Array)}
        widest = common.widest if self.kernel else {}
        self.expr = Expressions(names, arrays, self.lengths, common, widest)
        self.name = signatures[function.name][0]
        elsewhere = {*constants, *(p.name for p in function.params), *(a.array for a in shared)}
        self.places = places(function.body, [n for n in self.types if n not in elsewhere])

    def lines(self) -> Iterator[Line]:
        yield from self.signature()
        yield from (
            Line(f"{INDENT}{text}", alloc.span) for text, alloc in declarations(self.shared, self.expr, self.scope)
        )
        used = Counter(n.name for s in statements(self.function.body) for n in nodes(s) if isinstance(n, ir.Special))
        for name in ("lane", "warp"):
            if used[name] > (self.block[1:] == (1, 1)):  # the formula of a flat block may be in an expression, once
                value = self.expr.in_warp(name).text
                self.expr.indices[name] = self.scope.new(name)
                yield Line(f"{INDENT}const int {self.expr.indices[name]} = {value};")
        yield from self.body(self.function.body, INDENT)
        yield Line("}")

    # -------------------------------------------------------------- head
    def signature(self) -> Iterator[Line]:
        span = self.function.span
        params = [self.param(p) for p in self.function.params] + [f"const int {n}" for n in self.lengths.values()]
        result = self.expr.type_name(self.function.result) if self.function.result else "void"
        head = f"static __device__ __forceinline__ {result} {self.name}("
        if self.kernel:
            x, y, z = self.block
            clusters = "" if self.cluster == ONE_BLOCK else f" __cluster_dims__{self.cluster}"
            yield Line(f'extern "C" __global__ void{clusters} __launch_bounds__({x * y * z})', span)
            head = f"{self.name}("
        whole = f"{head}{', '.join(params)}) {{"
        if len(whole) <= WIDTH:
            yield Line(whole, span)
            return
        yield Line(head, span)
        yield from (Line(f"{INDENT}{p}{',' if p is not params[-1] else ''}", span) for p in params)
        yield Line(") {", span)

    def param(self, param: ir.Param) -> str:
        name, type = self.expr.names[param.name], param.type
        if not isinstance(type, Array):
            return f"{type_name(type)} {name}"
        if param.name in self.tensors:
            return f"const __grid_constant__ CUtensorMap {name}"
        const = "" if param.name in self.written else "const "
        if type.space == "register":
            return f"{const}{type_name(type.element)} (&{name})[{type.length}]"
        # Other blocks write before a grid barrier: nvcc must not reuse earlier reads after it.
        alone = self.kernel and (bool(const) or not self.cooperative)
        return f"{const}{type_name(type.element)}*{' __restrict__' if alone else ''} {name}"

    # -------------------------------------------------------------- statements
    def body(self, body: ir.Body, lead: str) -> Iterator[Line]:
        for stmt in body:
            yield from self.declarations(stmt, lead)
            yield from self.statement(stmt, lead)

    def declarations(self, stmt: Any, lead: str) -> Iterator[Line]:
        """Yield declarations of variables that the statement uses and does not declare."""
        by_type: dict[str, list[str]] = {}
        for name in self.places.before.get(id(stmt), []):
            type = self.types[name]
            element, length = (type.element, f"[{type.length}]") if isinstance(type, Array) else (type, "")
            by_type.setdefault(self.expr.declared(name, element), []).append(f"{self.expr.names[name]}{length}")
        yield from (Line(f"{lead}{type} {', '.join(names)};", stmt.span) for type, names in by_type.items())

    def statement(self, stmt: Any, lead: str) -> Iterator[Line]:
        at = partial(Line, span=stmt.span)
        match stmt:
            case ir.Let():
                yield at(f"{lead}{self.let(stmt)};")
            case Update():
                place = self.expr.element(stmt.array, stmt.index).text
                yield at(f"{lead}{place} {stmt.symbol}= {self.expr(stmt.value)};")
            case ir.Alloc(type=array) if array.space in ("register", "local") and id(stmt) in self.places.at_assignment:
                declared = self.expr.declared(stmt.array, array.element)
                yield at(f"{lead}{declared} {self.expr.names[stmt.array]}[{array.length}];")
            case ir.If():
                yield from self.branch(stmt, lead)
            case ir.While():
                yield at(f"{lead}while ({self.expr(stmt.cond)}) {{")
                yield from self.body(stmt.body, lead + INDENT)
                yield Line(f"{lead}}}")
            case ir.For():
                yield from self.counted(stmt, lead)
            case ir.Break() | ir.Continue() | ir.Return():
                yield at(f"{lead}{self.jump(stmt)}")
            case ir.Assert():
                if stmt.items:
                    yield at(f"{lead}{self.print(('assertion failed: ', *stmt.items))}")
                yield at(f"{lead}{self.assertion(stmt)}")
            case ir.Print():
                yield at(f"{lead}{self.print(stmt.items)}")
            case ir.Frame():  # a front end inlined a call; Return leaves the lambda
                yield at(f"{lead}[&] {{")
                yield from self.body(stmt.body, lead + INDENT)
                yield Line(f"{lead}}}();")
            case _ if type(stmt) in TABLE:
                yield at(f"{lead}{self.expr(stmt)};")

    def let(self, let: ir.Let) -> str:
        target, value = let.target, let.value
        if target is None:
            text = self.expr(value)
            return f"(void){text}" if isinstance(value, ir.Load) else text
        name = self.expr(target)
        if isinstance(target, ir.Reg) and id(let) in self.places.at_assignment:
            return f"{self.expr.type_name(target.type)} {name} = {self.expr(value)}"
        if isinstance(value, ir.Op) and same(value.args[0], target) and (update := infix(value)) is not None:
            return f"{name} {update[0]}= {self.expr(update[1])}"
        if isinstance(value, ir.Pack) and isinstance(target, ir.Reg):
            changed = [(i, a) for i, a in enumerate(value.args) if not _is_component(a, target.name, i)]
            if len(changed) == 1:
                ((at, new),) = changed
                update = infix(new) if isinstance(new, ir.Op) and _is_component(new.args[0], target.name, at) else None
                symbol, new = update or ("", new)
                return f"{name}.{'xyzw'[at]} {symbol}= {self.expr(new)}"
        return f"{name} = {self.expr(value)}"

    def branch(self, stmt: ir.If, lead: str) -> Iterator[Line]:
        cond, then, orelse = stmt.cond, stmt.then, stmt.orelse
        if not then and orelse:
            cond, then, orelse = ir.Op("not", (cond,), BOOL, cond.span), orelse, ()
        if not orelse and len(then) == 1 and isinstance(then[0], ir.Break | ir.Continue | ir.Return):
            yield Line(f"{lead}if ({self.expr(cond)}) {self.jump(then[0])}", stmt.span)
            return
        yield Line(f"{lead}if ({self.expr(cond)}) {{", stmt.span)
        yield from self.body(then, lead + INDENT)
        if len(orelse) == 1 and isinstance(orelse[0], ir.If) and id(orelse[0]) not in self.places.before:
            first, *rest = self.branch(orelse[0], lead)
            yield Line(f"{lead}}} else {first.text.lstrip()}", first.span)
            yield from rest
            return
        if orelse:
            yield Line(f"{lead}}} else {{")
            yield from self.body(orelse, lead + INDENT)
        yield Line(f"{lead}}}")

    def counted(self, loop: ir.For, lead: str) -> Iterator[Line]:
        start = self.expr(loop.start)
        outer = self.expr.names[loop.var.name]
        if any(isinstance(n, ir.Reg) and n.name == loop.var.name for n in (loop.start, *nodes(loop.start))):
            self.expr.names[loop.var.name] = self.scope.new(loop.var.name)  # in C++ `int i = i` reads itself
        name = self.expr.names[loop.var.name]
        test, step = self.expr(counting.test(loop)), self.stepped(loop, name)
        if loop.unroll:
            yield Line(f"{lead}#pragma unroll", loop.span)
        head = f"{type_name(loop.var.type)} {name} = {start}; {test}; {step}"
        yield Line(f"{lead}for ({head}) {{", loop.span)
        yield from self.body(loop.body, lead + INDENT)
        yield Line(f"{lead}}}")
        self.expr.names[loop.var.name] = outer

    def stepped(self, loop: ir.For, name: str) -> str:
        """The step of a loop as a C++ expression."""
        if loop.limit is not None:
            return f"{name} = {self.expr(counting.moved(loop))}"
        if not isinstance(loop.step, int):
            return f"{name} += {self.expr(loop.step)}"
        sign = "+" if loop.step > 0 else "-"
        return f"{sign}{sign}{name}" if abs(loop.step) == 1 else f"{name} {sign}= {abs(loop.step)}"

    def jump(self, stmt: Any) -> str:
        if isinstance(stmt, ir.Return) and stmt.value is not None:
            return f"return {self.expr(stmt.value)};"
        return f"{type(stmt).__name__.lower()};"

    def assertion(self, stmt: ir.Assert) -> str:
        if not stmt.message:
            return f"assert({self.expr(stmt.cond)});"
        return f"assert({self.expr(stmt.cond, INFIX['&&'], '&&')} && {quoted(stmt.message)});"

    def print(self, items: Iterable[str | ir.Expr]) -> str:
        """Print in the emulators' format, with the block and the thread before the text."""
        values = [f"{index}.{axis}" for index in ("blockIdx", "threadIdx") for axis in "xyz"]
        formats, conversion = ["block (%u, %u, %u), thread (%u, %u, %u): "], ""
        for item in items:
            if isinstance(item, str):
                text, _, conversion = item.partition(CONVERSION)
                formats.append(text.replace("%", "%%") + conversion)
                continue
            if not conversion:
                formats.append(format_of(item.type))  # type: ignore[arg-type]
            elif "*" in conversion:
                conversion = conversion.replace("*", "", 1)
            text = self.expr(item, INFIX["||"] if item.type is BOOL else ANY)
            if item.type in HALVES:
                text = widened(item.type).format(text)
            values.append(f'{text} ? "True" : "False"' if item.type is BOOL else text)
        return f"printf({', '.join([quoted(''.join(formats) + chr(10)), *values])});"


def _is_component(expr: ir.Expr, vector: str, index: int) -> bool:
    """Return whether an expression is the component of a vector: `vector.x` for index 0."""
    match expr:
        case ir.Component(value=ir.Reg() as value, index=ir.Const() as at):
            return value.name == vector and at.value == index
    return False


# ------------------------------------------------------------------ long lines
def _wrapped(line: Line) -> Iterator[Line]:
    """Break a line to the width, at the fewest open brackets. An assertion is not broken: a macro's argument must not contain `#line`."""
    text, lead = line.text, line.text[: len(line.text) - len(line.text.lstrip())] + INDENT
    while len(text) > WIDTH and not text.lstrip().startswith(("assert(", "//")):
        at = _break(text, len(lead))
        if at is None:
            break
        yield Line(text[:at].rstrip(), line.span)
        text = lead + text[at:].lstrip()
    yield Line(text, line.span)


def _break(text: str, start: int) -> int | None:
    """The best place to break: the last of the shallowest within the width, to the right of an assignment."""
    assignment = re.search(r" \S?= ", text.partition('"')[0])
    begin = max(start, assignment.end() if assignment else 0)
    depth, quote, best, least = 0, False, assignment.end() if assignment and assignment.end() > start else None, 99
    for at, c in enumerate(text[:WIDTH]):
        if c == '"' and text[at - 1] != "\\":
            quote = not quote
        if quote:
            continue
        depth += (c in "([{") - (c in ")]}")
        if at > begin and depth <= least and (c == "," or re.match(r" (\+|-|\*|/|\?|:|\||&|&&|\|\|) ", text[at:])):
            least, best = depth, at + 1
    return best
