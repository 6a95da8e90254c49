"""Reference interpreter: runs the IR one thread at a time, without masks or vectors, using only the op table.

It shares no code with an engine, so that an engine can be compared with it. Every thread is a Python generator. A thread runs
until it reaches a barrier or a warp operation, yields a `Wait`, and is resumed with the result. Threads wait
together if they are at the same position: the same statement in the same iteration of the same loops. If threads
of a warp wait at several positions, the earliest in program order is served first. Programs with races have no
defined result here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.effects import TABLE as EFFECTS
from ..ir.ops import TABLE
from ..ir.updates import update_of
from ..ir.wide import access_type
from ..language.intrinsics import WARP_SIZE
from ..language.types import Array, Vector
from ..runtime.engine import Request

Number = npt.NDArray[Any]  # one element: what the op table computes with
Value = Number | tuple[Number, ...]
Buffer = npt.NDArray[Any]
Position = tuple[int, ...]
"""Position of a thread: statement, iteration, statement, ... from the outside in; ordered as a warp executes them."""
Jump = Literal["break", "continue", "return"]
POISON = 0xA5


class Undefined(Exception):
    """The program does something undefined in CUDA: the kernel is wrong."""


@dataclass
class Wait:
    """The barrier or warp operation at which a thread waits."""

    position: Position
    node: Any
    value: Number
    mask: int
    lane: int


Steps = Generator[Wait, Any, Jump | None]


def run(request: Request) -> dict[str, Buffer]:
    """Return the final contents of every global array, by parameter name. Raises Undefined."""
    kernel = request.program.kernel
    arrays = [p.name for p in kernel.params if isinstance(p.type, Array)]
    memory = request.memory(arrays)
    wide, high, deep = request.grid
    indices = [(x, y, z) for z in range(deep) for y in range(high) for x in range(wide)]
    waiting = [_block(request, memory, index) for index in indices]
    with np.errstate(all="ignore"):
        while waiting:  # each runs to its next grid barrier
            before, waiting = waiting, [block for block in waiting if next(block, True) is None]
            if 0 < len(waiting) < len(before):
                raise Undefined("some blocks wait at a grid barrier, others have ended")
    return memory


def _block(request: Request, memory: Mapping[str, Buffer], index: tuple[int, int, int]) -> Iterator[None]:
    """Run a block, with a pause at each grid barrier."""
    yield from _Block(request, memory, index).run()


class _Block:
    def __init__(self, request: Request, memory: Mapping[str, Buffer], index: tuple[int, int, int]) -> None:
        self.request, self.index = request, index
        self.functions = {f.name: f for f in request.program.functions}
        self.shared: dict[Any, Buffer] = {}
        self.dynamic = np.full(request.dynamic_shared, POISON, np.uint8)
        wide, high, deep = request.block
        indices = [(x, y, z) for z in range(deep) for y in range(high) for x in range(wide)]
        self.threads = [_Thread(self, linear, thread) for linear, thread in enumerate(indices)]
        self.running: dict[int, Steps] = {}
        for thread in self.threads:
            frame = _Frame({}, dict(memory), ())
            for param in request.program.kernel.params:
                if not isinstance(param.type, Array):
                    frame.registers[param.name] = np.array([request.arguments[param.name]])
            self.running[thread.linear] = thread.body(request.program.kernel.body, frame, ())

    def run(self) -> Iterator[None]:
        """Run all threads, with a pause at each grid barrier."""
        waiting: dict[int, Wait] = {}
        resumed: dict[int, Any] = dict.fromkeys(self.running)
        while self.running:
            for linear, answer in sorted(resumed.items()):
                try:
                    waiting[linear] = self.running[linear].send(answer)
                except StopIteration:
                    del self.running[linear]
            resumed = self.answer_waits(waiting)
            nodes = [waiting.pop(linear).node for linear in resumed]
            if any(isinstance(node, ir.Barrier) and node.mode == "grid" for node in nodes):
                yield

    def answer_waits(self, waiting: dict[int, Wait]) -> dict[int, Any]:
        """Return the results of the threads that continue: a group in each warp that has one, else the whole block."""
        answers: dict[int, Any] = {}
        for warp in sorted({linear // WARP_SIZE for linear in waiting}):
            lanes = {n: m for n, m in waiting.items() if n // WARP_SIZE == warp and not isinstance(m.node, ir.Barrier)}
            if lanes:
                first = min(m.position for m in lanes.values())
                group = {n % WARP_SIZE: m for n, m in lanes.items() if m.position == first}
                living = sum(1 << n % WARP_SIZE for n in waiting if n // WARP_SIZE == warp)
                answers |= {WARP_SIZE * warp + lane: answer for lane, answer in _exchange(group, living).items()}
        if answers or not waiting:
            return answers
        if len({m.position for m in waiting.values()}) > 1:
            raise Undefined("threads wait at different barriers")
        return self.barrier(waiting)

    def barrier(self, waiting: dict[int, Wait]) -> dict[int, Any]:
        node = next(iter(waiting.values())).node
        assert isinstance(node, ir.Barrier)
        holds = [bool(m.value[0]) for m in waiting.values()]
        combined = {"sync": True, "grid": True, "count": sum(holds), "and": all(holds), "or": any(holds)}[node.mode]
        return dict.fromkeys(waiting, np.array([combined], node.type.dtype))


def _exchange(group: dict[int, Wait], living: int) -> dict[int, Any]:
    """Execute one warp operation among the waiting lanes."""
    waiting_mask = sum(1 << lane for lane in group)
    for lane, wait in group.items():
        active = isinstance(wait.node, ir.Vote) and wait.node.mode == "active"
        if not active and (wait.mask & living & ~waiting_mask or not wait.mask >> lane & 1):
            raise Undefined(f"lane {lane} names {wait.mask:#x} of {living:#x}, but {waiting_mask:#x} are here")
    return {lane: _answer(lane, wait, group) for lane, wait in group.items()}


def _answer(lane: int, wait: Wait, group: dict[int, Wait]) -> Number | None:
    node = wait.node
    if isinstance(node, ir.WarpBarrier):
        return None
    named = {n: m.value for n, m in group.items() if wait.mask >> n & 1}
    if isinstance(node, ir.Shuffle):
        source = _source(node, lane, wait.lane & (WARP_SIZE - 1))
        if source not in group:
            raise Undefined(f"lane {lane} reads lane {source}, which is not here")
        return group[source].value
    if not isinstance(node, ir.Vote):
        return _by_meaning(lane, wait, group)
    match node.mode:
        case "active":
            result = sum(1 << n for n in group)
        case "ballot":
            result = sum(1 << n for n, value in named.items() if value[0])
        case "any":
            result = any(value[0] for value in named.values())
        case "all":
            result = all(value[0] for value in named.values())
        case "match":
            result = sum(1 << n for n, value in named.items() if value.tobytes() == wait.value.tobytes())
        case "match_all":
            equal = all(value.tobytes() == wait.value.tobytes() for value in named.values())
            result = sum(1 << n for n in named) if equal else 0
        case operation:
            combined = wait.value
            for n, value in named.items():
                combined = TABLE[operation].meaning(combined, value) if n != lane else combined
            return combined
    return np.array([result], node.type.dtype)


def _by_meaning(lane: int, wait: Wait, group: dict[int, Wait]) -> Number:
    """Return the result of a lane, by the NumPy meaning of the effect's row."""
    row = EFFECTS[type(wait.node)]
    assert row.meaning is not None
    masks, values = np.zeros(WARP_SIZE, np.uint32), np.zeros(WARP_SIZE, wait.value.dtype)
    present = sum(1 << n for n in group)
    for n, other in group.items():
        masks[n], values[n] = other.mask & present, other.value[0]
    operands = [values] if len(row.operands) > 1 else []
    return np.atleast_1d(row.meaning(wait.node, masks, *operands)[lane])


def _source(node: ir.Shuffle, lane: int, offset: int) -> int:
    """Return the lane that a shuffle reads."""
    first = lane - lane % node.width
    match node.mode:
        case "idx":
            return first + offset % node.width
        case "up":
            return lane - offset if lane - offset >= first else lane
        case "down":
            return lane + offset if lane + offset < first + node.width else lane
        case "xor":
            return lane ^ offset if lane ^ offset < first + node.width else lane


@dataclass
class _Frame:
    """One call of a function: its registers, its arrays, and the chain of calls."""

    registers: dict[str, Value]
    arrays: dict[str, Any]
    calls: tuple[int, ...]
    result: Value | None = None


class _Thread:
    def __init__(self, block: _Block, linear: int, index: tuple[int, int, int]) -> None:
        self.block, self.linear = block, linear
        self.own: dict[Any, Any] = {}
        self.clock = 0
        groups = {
            "thread": index,
            "block": block.index,
            "block_dim": block.request.block,
            "grid_dim": block.request.grid,
        }
        self.special = {
            f"{g}.{axis}": n for g, extents in groups.items() for axis, n in zip("xyz", extents, strict=True)
        }
        self.special |= {"lane": linear % WARP_SIZE, "warp": linear // WARP_SIZE}

    # -------------------------------------------------------------- statements
    def body(self, body: ir.Body, frame: _Frame, position: Position) -> Steps:
        for number, stmt in enumerate(body):
            jump = yield from self.statement(stmt, frame, (*position, number))
            if jump:
                return jump
        return None

    def statement(self, stmt: ir.Stmt, frame: _Frame, position: Position) -> Steps:
        match stmt:
            case ir.Let():
                value = yield from self.right_side(stmt, frame, position)
                self.assign(stmt.target, value, frame)
            case ir.Store():
                array, index = self.element(stmt, frame)
                array[index] = _flat(self.value(stmt.value, frame))
            case ir.Alloc():
                self.allocate(stmt, frame)
            case ir.If():
                condition = self.holds(stmt.cond, frame)
                arm = stmt.then if condition else stmt.orelse
                return (yield from self.body(arm, frame, (*position, 1 - condition)))
            case ir.While():
                return (yield from self.repeat(stmt, frame, position))
            case ir.For():
                return (yield from self.count(stmt, frame, position))
            case ir.Frame():
                yield from self.body(stmt.body, frame, position)  # a return leaves only the frame
            case ir.Break() | ir.Continue() | ir.Return():
                return self.jump(stmt, frame)
            case ir.WarpBarrier():
                yield Wait(position, stmt, np.zeros(1), self.integer(stmt.mask, frame), 0)
            case ir.Assert():
                if not self.holds(stmt.cond, frame):
                    items = [item if isinstance(item, str) else self.number(item, frame)[0] for item in stmt.items]
                    raise Undefined(f"assertion failed: {''.join(map(str, items)) or stmt.message}")
            case ir.Print() | ir.Check():
                pass  # output, and checks of emulators, which continue after faults: no effect on results
            case _ if type(stmt) in EFFECTS:
                pass  # an order of memory: one thread runs at a time, so memory is always in order
            case _:
                raise TypeError(f"{type(stmt).__name__} is unknown to the reference interpreter")
        return None

    def jump(self, stmt: ir.Break | ir.Continue | ir.Return, frame: _Frame) -> Jump:
        if isinstance(stmt, ir.Break):
            return "break"
        if isinstance(stmt, ir.Continue):
            return "continue"
        frame.result = None if stmt.value is None else self.value(stmt.value, frame)
        return "return"

    def repeat(self, stmt: ir.While, frame: _Frame, position: Position) -> Steps:
        for iteration in range(self.block.request.iteration_limits[1]):
            yield from self.body(stmt.setup, frame, (*position, iteration, 0))
            if not self.holds(stmt.cond, frame):
                return None
            jump = yield from self.body(stmt.body, frame, (*position, iteration, 1))
            if jump == "break":
                return None
            if jump == "return":
                return jump
        raise Undefined("the loop does not end")

    def count(self, stmt: ir.For, frame: _Frame, position: Position) -> Steps:
        start, stop = self.integer(stmt.start, frame), self.integer(stmt.stop, frame)
        step = stmt.step if isinstance(stmt.step, int) else self.integer(stmt.step, frame)
        if step == 0:
            raise Undefined("a loop's step is 0")
        for iteration, number in enumerate(range(start, stop, step)):
            assert not isinstance(stmt.var.type, Vector)
            frame.registers[stmt.var.name] = np.array([number], stmt.var.type.dtype)
            jump = yield from self.body(stmt.body, frame, (*position, iteration))
            if jump == "break":
                return None
            if jump == "return":
                return jump
        return None

    def right_side(self, stmt: ir.Let, frame: _Frame, position: Position) -> Generator[Wait, Any, Value | None]:
        match stmt.value:
            case ir.Load() as load:
                array, index = self.element(load, frame)
                result = array[index : index + 1].copy()
                return tuple(result[:, n] for n in range(result.shape[1])) if isinstance(load.type, Vector) else result
            case ir.Atomic() as atomic:
                operand = self.value(atomic.value, frame)
                array, index = self.element(atomic, frame)
                old = array[index : index + 1].copy()
                array[index] = update_of(atomic)(old, np.array([_flat(operand)], array.dtype))[0]
                return tuple(old[:, n] for n in range(old.shape[1])) if isinstance(atomic.type, Vector) else old
            case ir.CompareSwap() as swap:
                expected, operand = self.number(swap.expected, frame), self.number(swap.value, frame)
                array, index = self.element(swap, frame)
                old = array[index : index + 1].copy()
                if old[0] == expected[0]:
                    array[index] = operand[0]
                return old
            case ir.Shuffle() as shuffle:
                value, lane = self.number(shuffle.value, frame), self.integer(shuffle.lane, frame)
                answer = yield Wait(position, shuffle, value, self.integer(shuffle.mask, frame), lane)
                return answer  # type: ignore[no-any-return]
            case ir.Clock() as clock:
                self.clock += 1
                return np.array([self.clock - 1], clock.type.dtype)
            case ir.Barrier() as barrier:
                answer = yield Wait(position, barrier, self.number(barrier.value, frame), 0, 0)
                return answer  # type: ignore[no-any-return]
            case ir.Call() as call:
                return (yield from self.call(stmt, call, frame, position))
            case pure if isinstance(pure, ir.Expr):
                return self.value(pure, frame)
            case collective:
                value = np.zeros(1) if not hasattr(collective, "value") else self.number(collective.value, frame)
                answer = yield Wait(position, collective, value, self.integer(collective.mask, frame), 0)
                return answer  # type: ignore[no-any-return]

    def call(
        self, stmt: ir.Let, call: ir.Call, frame: _Frame, position: Position
    ) -> Generator[Wait, Any, Value | None]:
        callee = self.block.functions[call.function]
        inner = _Frame({}, {}, (*frame.calls, id(stmt)))
        for param, arg in zip(callee.params, call.args, strict=True):
            if isinstance(arg, ir.ArrayRef):
                inner.arrays[param.name] = frame.arrays[arg.name]
            else:
                inner.registers[param.name] = self.value(arg, frame)
        yield from self.body(callee.body, inner, position)
        return inner.result

    def assign(self, target: ir.Reg | ir.Item | None, value: Value | None, frame: _Frame) -> None:
        if target is None:
            return
        assert value is not None
        if isinstance(target, ir.Reg):
            frame.registers[target.name] = value
        else:
            frame.arrays[target.array][self.integer(target.index, frame)] = value

    # -------------------------------------------------------------- memory
    def allocate(self, stmt: ir.Alloc, frame: _Frame) -> None:
        """Allocate an array: shared memory for the block, other memory for the thread, once per declaration and chain of calls."""
        arrays: dict[Any, Any] = self.block.shared if stmt.type.space == "shared" else self.own
        key = (*frame.calls, stmt.array)
        if key not in arrays:
            arrays[key] = [None] * (stmt.type.length or 0) if stmt.type.space == "register" else self.storage(stmt)
        frame.arrays[stmt.array] = arrays[key]

    def storage(self, stmt: ir.Alloc) -> Buffer:
        element, length = stmt.type.element, stmt.type.length
        if length is None:
            return self.dynamic_piece(stmt)
        if isinstance(element, Vector):
            return np.full((length, element.size), POISON, np.uint8).view(element.element.dtype)
        if stmt.values:
            return np.array(stmt.values, element.dtype)
        return np.full(length * element.size, POISON, np.uint8).view(element.dtype)

    def dynamic_piece(self, stmt: ir.Alloc) -> Buffer:
        """Return a piece of the block's dynamic shared memory."""
        element, place = stmt.type.element, self.block.request.dynamic_arrays[stmt.array]
        piece = self.block.dynamic[place.offset :][: place.length * element.size]
        if isinstance(element, Vector):
            return piece.view(element.element.dtype).reshape(-1, element.lanes)
        return piece.view(element.dtype)

    def element(self, access: ir.Access, frame: _Frame) -> tuple[Buffer, int]:
        """Return an array in units of an access, and the index."""
        name, index = access.array, access.index
        array, at = _as_type(frame.arrays[name], access_type(access)), self.integer(index, frame)
        if isinstance(index, ir.Within):
            for dimension, extent in zip(index.index, index.extents, strict=True):
                if dimension is not None and not 0 <= self.integer(dimension, frame) < self.integer(extent, frame):
                    raise Undefined(f"{index.shown}: an index of {self.integer(dimension, frame)}")
        if not 0 <= at < len(array):
            raise Undefined(f"{name}[{at}], but it has {len(array)} elements")
        return array, at

    # -------------------------------------------------------------- expressions
    def holds(self, expr: ir.Expr, frame: _Frame) -> bool:
        return bool(self.number(expr, frame)[0])

    def integer(self, expr: ir.Expr, frame: _Frame) -> int:
        return int(self.number(expr, frame)[0])

    def number(self, expr: ir.Expr, frame: _Frame) -> Number:
        value = self.value(expr, frame)
        assert not isinstance(value, tuple)
        return value

    def value(self, expr: ir.Expr, frame: _Frame) -> Value:
        match expr:
            case ir.Const():
                return np.array([expr.value], expr.type.dtype)
            case ir.Reg():
                return frame.registers[expr.name]
            case ir.Item():
                return frame.arrays[expr.array][self.integer(expr.index, frame)]  # type: ignore[no-any-return]
            case ir.Special():
                return np.array([self.special[expr.name]], expr.type.dtype)
            case ir.Op(name="both" | "either", args=(first, second)):  # the second may be undefined otherwise
                known = self.number(first, frame)
                return self.number(second, frame) if bool(known[0]) == (expr.name == "both") else known
            case ir.Op(name="select", args=(condition, yes, no)):
                return self.value(yes if self.holds(condition, frame) else no, frame)
            case ir.Op():
                return TABLE[expr.name].meaning(*(self.number(a, frame) for a in expr.args))
            case ir.Pack():
                return tuple(self.value(a, frame) for a in expr.args)  # type: ignore[misc]
            case ir.Component():
                return self.value(expr.value, frame)[self.integer(expr.index, frame)]
            case ir.Within():
                return self.value(expr.flat, frame)
            case ir.Extent():
                return np.array([len(frame.arrays[expr.array])], expr.type.dtype)
        raise TypeError(f"{type(expr).__name__} is no expression")


def _as_type(array: Buffer, type: Any) -> Buffer:
    """Return memory as elements of another type, as many as it has whole ones."""
    element, lanes = (type.element, type.lanes) if isinstance(type, Vector) else (type, 0)
    data = array.reshape(-1).view(np.uint8)
    elements = data[: len(data) // type.size * type.size].view(element.dtype)
    return elements.reshape(-1, lanes) if lanes else elements


def _flat(value: Value) -> Any:
    return [component[0] for component in value] if isinstance(value, tuple) else value[0]
