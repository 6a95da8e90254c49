"""Hypothesis strategies for launches and for kernels.

`launch_strategies` has arrays, launch shapes and orders. Kernels are small, well typed and free of races: source text
with arguments to launch them on.

Each thread writes only its own elements. Threads exchange values through shared memory between barriers, through warp
operations, and through integer atomics whose order cannot be observed. Loops end. No kernel has undefined behaviour in CUDA, such as
a shuffle from an inactive lane or a barrier in a divergent branch. An engine under test and the python engine must agree on
every kernel:

    @given(strategies.kernels())
    def test_random_kernels(case):
        kernel = kernel_from_source(case.source, folder)
        request = prepare_request(kernel, grid=case.grid, block=case.block, args=case.arguments(), step_limit=1000)
        expected = engine_of("python").run(request).buffers
        for name, values in engine.run(request).buffers.items():
            assert BITS.agree(values, expected[name]).all()
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from ..language.types import SCALARS
from .launch_strategies import arrays, elements, launch_shapes, schedules

__all__ = ["Generated", "arrays", "elements", "kernels", "launch_shapes", "schedules"]

SIZE = 64  # elements of every input, and maximum threads of a block
TYPES = ("i32", "u32", "i64", "f32", "f64", "f16", "bf16", "bool")
NUMBERS = TYPES[:-1]
INTEGERS = TYPES[:3]
BLOCKS = ((32, 1, 1), (8, 8, 1), (20, 1, 1), (5, 4, 2), (64, 1, 1))
COMBINED = {"add": "added", "max": "largest", "xor": "mixed"}  # one buffer per operation, which commutes with itself

HEAD = '''"""A generated kernel."""
import simtbed as st
from simtbed import Global, bf16, f16, f32, f64, i32, i64, int2, u8, u32


@st.device
def helper(a: i32, b: f32) -> i32:
    """Returns early, from inside a loop too."""
{helper}


@st.kernel
def generated(
    in_i32: Global[i32], in_u32: Global[u32], in_i64: Global[i64], in_f32: Global[f32], in_f64: Global[f64],
    in_f16: Global[f16], in_bf16: Global[bf16], out_f16: Global[f16], out_bf16: Global[bf16],
    octets: Global[u8], pairs: Global[int2], added: Global[i32], largest: Global[i32], mixed: Global[i32],
    out_i32: Global[i32], out_u32: Global[u32], out_i64: Global[i64], out_f32: Global[f32], out_f64: Global[f64],
    out_bool: Global[i32], n: i32,
) -> None:
    threads = st.block_dim.x * st.block_dim.y * st.block_dim.z
    t = st.thread.x + st.block_dim.x * (st.thread.y + st.block_dim.y * st.thread.z)
    i = st.block.x * threads + t
    tile = st.shared(i32, {size})
    histogram = st.shared(i32, 4)
    scratch = st.local(f32, 4)
    kept = st.registers(i32, 4)
    for k in st.unroll(range(4)):
        scratch[k] = in_f32[k]
        kept[k] = in_i32[i + k]
'''


@dataclass(frozen=True)
class Generated:
    """A kernel's text and a launch of it."""

    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    seed: int

    @property
    def threads(self) -> int:
        return int(np.prod(self.grid) * np.prod(self.block))

    def arguments(self) -> dict[str, npt.NDArray[Any] | np.generic]:
        """Return inputs, extremes included, and outputs filled with a pattern."""
        random = np.random.default_rng(self.seed)
        buffers: dict[str, npt.NDArray[Any] | np.generic] = {}
        length = self.threads + SIZE
        for name in INTEGERS:
            kind = SCALARS[name].dtype
            low, high = SCALARS[name].range
            values = random.integers(low, high, length, kind, endpoint=True)
            small = random.integers(0, 9, length).astype(kind)
            buffers[f"in_{name}"] = np.where(random.random(length) < 0.7, small, values)
        for name in ("f32", "f64", "f16", "bf16"):
            buffers[f"in_{name}"] = random.normal(0, 10, length).astype(SCALARS[name].dtype)
        buffers["octets"] = random.integers(0, 256, length).astype(np.uint8)
        buffers["pairs"] = random.integers(-9, 9, (length, 2)).astype(np.int32)
        for name in COMBINED.values():
            buffers[name] = np.arange(8, dtype=np.int32)
        for name in TYPES:
            kind = SCALARS["i32" if name == "bool" else name].dtype
            buffers[f"out_{name}"] = np.full(4 * self.threads, 77, kind)
        return {**buffers, "n": np.int32(random.integers(1, 9))}


@dataclass(frozen=True)
class Context:
    """Context of a statement in the kernel.

    uniform: every thread of the block executes it. leavable: inside a loop that threads may leave individually.
    returns: a thread may return; not in a loop whose iterations the whole block executes together.
    """

    indent: int
    depth: int
    uniform: bool
    leavable: bool = False
    returns: bool = True
    device: bool = False

    @property
    def margin(self) -> str:
        return "    " * self.indent

    def arm(self, uniform: bool) -> Context:
        """Return the context of an arm of a branch."""
        return replace(self, indent=self.indent + 1, depth=self.depth - 1, uniform=uniform)

    def loop(self, uniform: bool) -> Context:
        """Return the context of the body of a loop."""
        return replace(self.arm(uniform), leavable=not uniform, returns=self.returns and not uniform)


@dataclass
class Writer:
    """Generates one kernel."""

    draw: st.DrawFn
    whole_warps: bool
    lines: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    loops: int = 0
    returned: bool = False
    """Whether a thread may have returned: its lane and its cell are not used any more."""

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def emit(self, at: Context, *lines: str) -> None:
        self.lines += [at.margin + line for line in lines]

    # -------------------------------------------------------------- expressions
    def expr(self, type: str, depth: int, device: bool = False) -> str:
        """Return an expression of the type."""
        if type == "bool":
            return self.condition(depth, device)
        if depth == 0:
            return self.leaf(type, device)
        a = self.expr(type, depth - 1, device)
        common = ["+", "-", "*", "min", "max", "choice", "cast", "literal", "abs"]
        own = ["&", "|", "^", "<<", ">>", "//", "%", "div"] if type in INTEGERS else ["/", "fma", "sqrt"]
        loads = [] if device else ["load"]
        kind = self.pick(*common, *own, *loads, *(["i32"] if type == "i32" else []))
        match kind:
            case "min" | "max":
                return f"{kind}({a}, {self.expr(type, depth - 1, device)})"
            case "choice":
                return f"({a} if {self.condition(depth - 1, device)} else {self.expr(type, depth - 1, device)})"
            case "cast":
                source = self.pick(*(t for t in TYPES if t != type))
                return f"{type}({self.expr(source, depth - 1, device)})"
            case "literal":
                return f"({a} {self.pick('+', '-', '*')} {self.untyped(2, device)})"
            case "abs":
                return f"abs({a})" if type != "u32" else f"(~{a})"
            case "<<" | ">>":
                count = self.pick(type, *INTEGERS)
                return f"({a} {kind} ({self.expr(count, depth - 1, device)} & {63 if type == 'i64' else 31}))"
            case "//" | "%":
                return f"({a} {kind} (({self.expr(type, depth - 1, device)} & 15) + 1))"
            case "div":
                return f"st.{self.pick('div', 'rem')}({a}, ({self.expr(type, depth - 1, device)} & 7) + 1)"
            case "fma":
                return f"st.fma({a}, {self.expr(type, depth - 1, device)}, {self.leaf(type, device)})"
            case "sqrt":
                return f"st.sqrt(abs({a}))"
            case "load":
                return f"in_{type}[{self.expr('i32', depth - 1)} & {SIZE - 1}]"
            case "i32":
                return self.whole(a, depth, device)
        return f"({a} {kind} {self.expr(type, depth - 1, device)})"

    def untyped(self, depth: int, device: bool) -> str:
        """Return a number without a type of its own: a literal, or a choice of literals."""
        if depth == 0 or self.number(0, 3):
            return str(self.number(0, 9))
        first, second = self.untyped(depth - 1, device), self.untyped(depth - 1, device)
        return f"({first} if {self.condition(depth - 1, device)} else {second})"

    def whole(self, a: str, depth: int, device: bool) -> str:
        """Return an i32 expression: bits, bytes, vector components, local arrays, calls."""
        bits = [f"st.popcount({a})", f"st.clz({a})", f"st.bitcast(i32, f32({a}))"]
        if device:
            return self.pick(*bits)
        memory = [
            f"i32(octets[{a} & {SIZE - 1}])",
            f"pairs[{a} & {SIZE - 1}].{self.pick('x', 'y')}",
            f"kept[{self.number(0, 3)}]",
        ]
        call = f"helper({a}, {self.expr('f32', depth - 1)})"
        return self.pick(*bits, *memory, f"i32(scratch[{a} & 3])", call, call)

    def leaf(self, type: str, device: bool) -> str:
        literal = f"{type}({self.number(-9, 99) if type[0] != 'u' else self.number(0, 99)})"
        if device:
            return self.pick(*self.names.get(f"device {type}", []), literal)
        indices = ["t", "i", "n", "st.lane", "st.warp", *self.names.get("iterations", [])] if type == "i32" else []
        return self.pick(*(f"{type}_{k}" for k in range(2)), *indices, literal)

    def condition(self, depth: int, device: bool) -> str:
        if depth == 0 and not device:
            return self.pick("bool_0", "bool_1")
        type = self.pick(*NUMBERS)
        below = max(0, depth - 1)
        a, b = self.expr(type, below, device), self.expr(type, below, device)
        simple = f"({a} {self.pick('<', '<=', '>', '>=', '==', '!=')} {b})"
        if depth == 0:
            return simple
        match self.pick("simple", "simple", "not", "and", "or"):
            case "not":
                return f"(not {simple})"
            case "and" | "or" as word:
                return f"({simple} {word} {self.condition(depth - 1, device)})"
        return simple

    # -------------------------------------------------------------- statements
    def body(self, at: Context, most: int, least: int = 1) -> None:
        for _ in range(self.number(least, most)):
            self.statement(at)

    def statement(self, at: Context) -> None:
        kinds = [self.assign, self.assign, self.augment]
        if not at.device:
            kinds += [self.store, self.scratch, self.atomic, self.active_votes]
        if at.depth > 0:
            kinds += [self.branch, self.branch, self.count, self.count, self.repeat]
            kinds += [self.leave, self.leave] if at.leavable or at.returns else []
        if at.uniform:
            kinds += [self.votes, self.block_count]
            if not self.returned:
                kinds += [self.exchange, self.histogram]
                kinds += [self.shuffle, self.shuffle] if self.whole_warps else []
        self.draw(st.sampled_from(kinds))(at)

    def variable(self, type: str, at: Context) -> str:
        return self.pick("c", "d") if at.device else f"{type}_{self.number(0, 1)}"

    def assign(self, at: Context) -> None:
        type = "i32" if at.device else self.pick(*TYPES)
        self.emit(at, f"{self.variable(type, at)} = {self.expr(type, self.number(1, 2), at.device)}")

    def augment(self, at: Context) -> None:
        type = "i32" if at.device else self.pick(*NUMBERS)
        self.emit(at, f"{self.variable(type, at)} {self.pick('+=', '-=', '*=')} {self.expr(type, 1, at.device)}")

    def store(self, at: Context) -> None:
        type = self.pick(*NUMBERS)
        self.emit(at, f"out_{type}[4 * i + {self.number(0, 3)}] {self.pick('=', '+=')} {self.expr(type, 2)}")

    def scratch(self, at: Context) -> None:
        target = self.pick("own", "register")
        if target == "own":
            self.emit(at, f"scratch[{self.expr('i32', 1)} & 3] = {self.expr('f32', 1)}")
        else:
            self.emit(
                at, "for k in st.unroll(range(1, 4)):", f"    kept[k] = kept[k - 1] + k * {self.leaf('i32', False)}"
            )

    def atomic(self, at: Context) -> None:
        word, array = self.draw(st.sampled_from(sorted(COMBINED.items())))
        self.emit(at, f"st.atomic_{word}({array}, {self.expr('i32', 1)} & 7, {self.expr('i32', 1)})")

    def branch(self, at: Context) -> None:
        uniform = at.uniform and self.number(0, 1) == 1
        test = f"n > {self.number(0, 8)}" if uniform else self.condition(1, at.device)
        self.emit(at, f"if {test}:")
        self.body(at.arm(uniform), 3)
        if self.number(0, 1):
            self.emit(at, "else:")
            self.body(at.arm(uniform), 2)

    def count(self, at: Context) -> None:
        """Write a for loop; a loop that may be left is not uniform."""
        uniform = at.uniform and self.number(0, 1) == 1
        variable = f"k{self.loops}"
        self.loops += 1
        stop = "n & 3" if uniform else f"{self.expr('i32', 1, at.device)} & 3"
        sign = "a" if at.device else "n"
        either = f"{stop}, 4 - 8 * ({sign} & 1), 1 - 3 * ({sign} & 1)"
        bounds = self.pick(stop, f"1, {stop}, 2", f"{stop}, -1, -1", either)
        self.emit(at, f"for {variable} in range({bounds}):")
        variables = self.names.setdefault("device i32" if at.device else "iterations", [])
        variables.insert(0, variable)
        self.loop_body(at.loop(uniform))
        variables.remove(variable)

    def repeat(self, at: Context) -> None:
        left = f"left{self.loops}"
        self.loops += 1
        uniform = at.uniform and self.number(0, 1) == 1
        self.emit(at, f"{left} = {'n' if uniform else self.expr('i32', 1, at.device)} & 3")
        test = f"{left} > 0" if uniform or self.number(0, 1) else f"{left} > 0 and {self.condition(1, at.device)}"
        self.emit(at, f"while {test}:", f"    {left} -= 1")
        self.loop_body(at.loop(uniform))

    def loop_body(self, at: Context) -> None:
        """Write a loop's body; threads that may leave it do so in the middle."""
        self.body(at, 2)
        if at.leavable:
            self.leave(at)
            self.statement(at)

    def leave(self, at: Context) -> None:
        """Write break, continue or return, under a condition."""
        word = self.pick(*["return"] * at.returns, *["break", "continue"] * at.leavable)
        self.emit(at, f"if {self.condition(1, at.device)}:")
        if word == "return" and at.device:
            word = f"return {self.expr('i32', 1, True)}"
        elif word == "return":
            self.returned = True
        self.emit(at, f"    {word}")

    # -------------------------------------------------------------- communication of threads
    def exchange(self, at: Context) -> None:
        """Exchange values through shared memory, between two barriers."""
        self.emit(at, "st.sync()", f"tile[t] = {self.expr('i32', 1)}", "st.sync()")
        self.emit(at, f"i32_{self.number(0, 1)} = tile[({self.expr('i32', 1)} & {SIZE - 1}) % threads]")

    def histogram(self, at: Context) -> None:
        self.emit(at, "st.sync()", "if t < 4:", "    histogram[t] = t", "st.sync()")
        self.emit(at, f"st.atomic_add(histogram, {self.expr('i32', 1)} & 3, {self.expr('i32', 1)})", "st.sync()")
        self.emit(at, f"i32_{self.number(0, 1)} = histogram[{self.expr('i32', 1)} & 3]")

    def block_count(self, at: Context) -> None:
        test = self.condition(1, False)
        self.emit(
            at,
            self.pick(
                f"i32_0 = st.sync_count({test})", f"bool_0 = st.sync_and({test})", f"bool_1 = st.sync_or({test})"
            ),
        )

    def shuffle(self, at: Context) -> None:
        type = self.pick(*NUMBERS)
        width = self.pick("", ", width=8", ", width=16")
        lane = self.pick(f"{self.expr('i32', 1)} & 31", str(self.number(0, 31)))
        word = self.pick("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor")
        self.emit(at, f"{type}_{self.number(0, 1)} = st.{word}({self.expr(type, 1)}, {lane}{width})")

    def votes(self, at: Context, mask: str = "") -> None:
        test = self.condition(1, False)
        ballot, match = f"u32_0 = st.ballot({test}{mask})", f"u32_1 = st.match_any({self.expr('i32', 1)} & 3{mask})"
        self.emit(at, self.pick(ballot, match, f"bool_0 = st.any({test}{mask})", f"bool_1 = st.all({test}{mask})"))

    def active_votes(self, at: Context) -> None:
        """Write votes among the active lanes."""
        self.emit(at, "u32_0 = st.active_mask()")
        self.votes(at, ", u32_0")


@st.composite
def kernels(draw: st.DrawFn) -> Generated:
    """Kernels for an engine and for the python engine."""
    block = draw(st.sampled_from(BLOCKS))
    writer = Writer(draw, whole_warps=int(np.prod(block)) % 32 == 0)
    writer.names = {f"device {t}": ["b" if t == "f32" else f"{t}(c)", f"{t}(a)"] for t in NUMBERS[1:]}
    writer.names["device i32"] = ["a", "c", "d"]
    inner = Context(indent=1, depth=2, uniform=False, device=True)
    writer.emit(inner, "c = a + 1", "d = a")
    writer.body(inner, most=4, least=2)
    writer.emit(inner, "return c - d")
    text = HEAD.format(helper="\n".join(writer.lines), size=SIZE)

    writer.lines = []
    at = Context(indent=1, depth=3, uniform=True)
    for type in NUMBERS:
        writer.emit(at, f"{type}_0 = in_{type}[i]", f"{type}_1 = in_{type}[i + 1]")
    writer.emit(at, "bool_0 = i32_0 > 3", "bool_1 = f32_0 < f32_1", "i32_1 = helper(i32_1, f32_0)")
    writer.body(at, most=10, least=5)
    for type in NUMBERS:
        writer.emit(at, f"out_{type}[4 * i] = {type}_0", f"out_{type}[4 * i + 1] = {type}_1")
    writer.emit(at, "out_bool[4 * i] = i32(bool_0)", "out_bool[4 * i + 1] = i32(bool_1)")
    writer.emit(at, "out_bool[4 * i + 2] = kept[3]", "out_bool[4 * i + 3] = i32(scratch[2])")
    grid = (draw(st.integers(1, 3)), 1, 1)
    return Generated(text + "\n".join(writer.lines) + "\n", grid, block, draw(st.integers(0, 2**16)))
