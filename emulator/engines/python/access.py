"""Memory of arrays, and the faults of accesses and checks as exceptions of the thread.

A function of this module returns an exception; the generated code raises it, so that the kernel's line is the last of its traceback.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.access import Operation
from ...ir.names import element
from ...ir.wide import access_type, width
from ...language.types import Array, Scalar, Vector
from ...runtime.arrays import split
from ...sanitizer import barriers, bounds, checkers, uninitialised
from ...span import Span
from .threads import Access, Fault, Thread


@dataclass(frozen=True)
class Origin:
    """The array of the kernel to which memory belongs: its name in the prepared program, its type and its declaration. block: the linear
    number of the block that has it."""

    name: str
    type: Array
    span: Span
    block: int = 0


def new_array(alloc: ir.Alloc, length: int) -> Any:
    """Return the memory of an allocation: elements [length] or [length, components], or registers of vectors as a list."""
    type = alloc.type.element
    scalar, shape = (type.element, (length, type.lanes)) if isinstance(type, Vector) else (type, (length,))
    if alloc.values:
        return np.array(alloc.values, scalar.dtype)
    zeros = np.zeros(shape, scalar.dtype)
    return list(map(tuple, zeros)) if alloc.type.space == "register" and isinstance(type, Vector) else zeros


def allocate(thread: Thread, alloc: ir.Alloc) -> Any:
    """Return the memory of an array and its flags of written elements; created once for each chain of calls."""
    owner = {"shared": thread.block.memory, "constant": thread.block.launch.memory}.get(alloc.type.space, thread.memory)
    key = (*thread.calls, alloc)
    if key not in owner:
        launch, length = thread.block.launch, alloc.type.length
        if length is None:
            length = launch.request.dynamic_arrays[alloc.array].length
        owner[key] = new_array(alloc, length), np.full(length, bool(alloc.values))
        launch.add_origin(owner[key][0], alloc, thread.span(alloc.span), thread.block.linear)
    return owner[key]


def of_block(thread: Thread, memory: Any, rank: Any) -> Any:
    """Return a shared array of another block of the cluster, and its flags. memory: of the array in the block of the thread."""
    own, other = thread.block, thread.block.cluster[int(rank)]
    key, flags = next((key, flags) for key, (array, flags) in own.memory.items() if array is memory)
    if key not in other.memory:
        other.memory[key] = np.zeros_like(memory), np.zeros_like(flags)
        origin = thread.block.launch.origins[id(memory)]
        thread.block.launch.origins[id(other.memory[key][0])] = replace(origin, block=other.linear)
    return other.memory[key]


@cache
def as_type(type: Scalar | Vector) -> Callable[[Any], Any]:
    """Return a function from memory to the same memory as elements of another type, as many as it has whole ones."""
    scalar, lanes = split(type)

    def view(memory: Any) -> Any:
        data = memory.reshape(-1).view(np.uint8)
        elements = data[: len(data) // type.size * type.size].view(scalar.dtype)
        return elements.reshape(-1, lanes) if lanes else elements

    return view


def elements(index: Any, count: int) -> slice:
    """Return the elements of an access with this index."""
    return slice(int(index) * count, (int(index) + 1) * count)


def first_unwritten(flags: Any, index: Any, count: int) -> int:
    """Return the first element of an access with this index that is not written."""
    return int(index) * count + int(np.argmin(flags[elements(index, count)]))


class AccessFaults:
    """The findings of one access. width: elements of the array that it reads or writes."""

    def __init__(self, node: ir.Access, array: Array) -> None:
        self.node, self.width = node, width(node, array)
        self.registers = bounds.index_registers(node.index)

    def out_of_bounds(self, thread: Thread, memory: Any, index: Any, shown: Any, values: Any) -> Fault:
        """Return the exception of an access outside the array. shown: of `shown_dimensions`. values: of `registers`."""
        origin = thread.block.launch.origins[id(memory)]
        node, operation = replace(self.node, array=origin.name), _OPERATIONS.get(type(self.node), Operation.ATOMIC)
        numbers = (int(index), len(memory), *map(int, shown))
        named = {bounds.user_name(n): v.item() for n, v in zip(self.registers, values, strict=True)}
        place = thread.place()
        return thread.fault(bounds.out_of_bounds(operation, node, origin.type, numbers, place, named, origin.span))

    def uninitialised(self, thread: Thread, memory: Any, index: Any) -> Fault | None:
        """Return the exception of a read of an element that was not written; None if a comment allows it."""
        launch = thread.block.launch
        request, origin, span = launch.request, launch.origins[id(memory)], thread.span(self.node.span)
        persistent = request.is_persistent(origin.name)
        facts = origin.name, origin.type, int(index), thread.place(), request.forms, persistent
        return launch.finding(uninitialised.read(request.prepared.program.kernel, span, *facts))


def memory_key(thread: Thread, origin: Origin) -> tuple[Any, ...]:
    """Return the key of an array that a thread sees: its name, with the block of a shared one and the thread of a local one."""
    return (
        origin.name,
        *{"shared": (origin.block,), "local": (origin.block, thread.linear)}.get(origin.type.space, ()),
    )


def record(thread: Thread, node: ir.Access, memory: Any, index: Any, value: Any) -> Fault | None:
    """Pass an access to the observers of the launch, for each of its elements. value: of a store. Return a finding to raise."""
    launch, block = thread.block.launch, thread.block.linear
    origin = launch.origins[id(memory)]
    thread.accesses += 1
    count, type = width(node, origin.type), access_type(node)
    if isinstance(node, ir.Load):
        value = (memory if type == origin.type.element else as_type(type)(memory))[index].copy()
    access = Access(
        node=node,
        span=thread.span(node.span),
        memory=memory_key(thread, origin),
        array=origin.name,
        index=int(index) * count,
        value=value,
        block=block,
        thread=thread.linear,
        number=thread.accesses,
        line=thread.line,
        executions=thread.executions[node],
        phase=launch.phase(block),
        arrived=thread.block.arrived,
        awaited=thread.block.awaited,
        epoch=thread.epoch,
        lane_epochs=thread.lane_epochs,
        failed=isinstance(node, ir.CompareSwap) and thread.swap_failed,
    )
    thread.executions[node] += 1
    for element_access in (replace(access, index=access.index + n) if n else access for n in range(count)):
        for observer in launch.observers:
            if (fault := observer.access(element_access)) is not None:
                return fault
    return None


def fence(thread: Thread, node: ir.Fence) -> None:
    """Order the accesses of a thread by a fence, if the launch finds races."""
    launch = thread.block.launch
    if launch.release_order is not None:
        launch.release_order.fence(thread, launch.phase(thread.block.linear), node.scope == "block")


def assigned(thread: Thread, assignment: tuple[ir.Let | ir.For, ir.Reg], value: Any) -> None:
    """Pass the value of a user's variable to the launch, after its assignment."""
    stmt, register = assignment
    thread.block.launch.assigned(thread, stmt.span, bounds.user_name(register.name), value)


_OPERATIONS = {ir.Load: Operation.LOAD, ir.Store: Operation.STORE}


def unassigned(thread: Thread, item: ir.Item, memory: Any, index: Any) -> Fault | None:
    """Return the exception of a read of an unassigned register of an array; None if a comment allows it."""
    launch, span = thread.block.launch, thread.span(item.span)
    register = ir.Reg(element(launch.origins[id(memory)].name, int(index)), item.type, span)
    check = ir.Check("uninitialised", register, register, (), span)
    return launch.finding(checkers.describe(check, launch.request.prepared.program.kernel, (), thread.place()))


def check_failed(thread: Thread, check: ir.Check, values: Any) -> Fault | None:
    """Return the exception of a failed check; None if a comment allows it."""
    launch = thread.block.launch
    diagnostic = checkers.describe(check, launch.request.program.kernel, [v.item() for v in values], thread.place())
    return launch.finding(replace(diagnostic, span=thread.span(diagnostic.span)))


def assertion_failed(thread: Thread, stmt: ir.Assert, values: Any) -> Fault:
    """Return the exception of a failed assertion."""
    return thread.fault(barriers.failed(stmt, thread.place(), [np.asarray(value).item() for value in values]))


def endless(thread: Thread, loop: Any, values: Any) -> Fault:
    """Return the exception of a loop above its limit. loop: the loop and the limit."""
    node, limit = loop
    return thread.fault(barriers.endless(node.span, thread.place(), limit))
