"""Calls of compiled code with values of all lanes of a warp: matrix instructions."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.library import PREFIX
from ..ir.tensor_cores import function_of
from ..language.intrinsics import WARP_SIZE
from ..llvm.builder import FunctionBuilder
from .moves import FORMS
from .operands import Decoded
from .traced import Lanes, Pointer, Traced, llvm_type
from .warpgroups import PRODUCT, product_of


class Calls:
    """The calls of a function that a `Machine` emits, and their buffers: registers of 32 lanes, 4 or more."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.builder: FunctionBuilder = machine.builder
        self._buffers, self._used = dict[tuple[str, int], str](), Counter[str]()

    def results(
        self,
        lanes: Lanes,
        groups: Sequence[Sequence[Any]],
        emit: Callable[[Sequence[str], str], None],
        form: tuple[int, Any],
    ) -> list[Traced]:
        """Return values of the lanes, in a loop over all of them, from the buffer that calls outside of loops fill.

        groups: values of the lanes, a buffer each. emit: emits the calls, given these buffers and that of the results. form: number and
        type of the results.
        """
        machine, buffers = self.machine, list[str]()
        self._used.clear()
        for values in groups:
            dtype = np.result_type(*(value.dtype for value in values))
            buffers.append(self.buffer(len(values), dtype))
            to = Pointer(self.builder, buffers[-1], 0, dtype)
            for number, value in enumerate(values):
                to.put(to.at(machine.lane + WARP_SIZE * number), value)
        count, dtype = form
        out = Pointer(self.builder, self.buffer(count, dtype), 0, dtype)
        machine.close_loop()
        emit(buffers, out.base)
        machine.open_loop(masked=False)
        lanes.ref = "true"
        return [out[machine.lane + WARP_SIZE * number] for number in range(count)]

    def buffer(self, registers: int, dtype: Any) -> str:
        """Return a buffer that no other value of the instruction has."""
        type = f"[{max(registers, 4)} x [32 x {llvm_type(np.dtype(dtype))}]]"
        self._used[type] += 1
        key = type, self._used[type]
        if key not in self._buffers:
            self._buffers[key] = self.builder.slot(type, "buffer")
        return self._buffers[key]

    def register(self, buffer: str, number: int) -> str:
        """Return the address of a register of 32 bits in a buffer."""
        return self.builder.element("i32", buffer, WARP_SIZE * number)

    def multiply(self, op: Decoded, a: str, b: str, c: str, d: str) -> None:
        """Call the function of a product of matrices with the buffers of its fragments."""
        numbers = self.builder.element("i64", self.machine.field("products", "ptr"), PRODUCT * op.number)
        self.builder.call(
            "void", PREFIX + function_of(product_of(op)), *(("ptr", place) for place in (a, b, c, d, numbers))
        )

    def move_matrices(self, form: tuple[str, bool], values: str, out: str) -> None:
        """Call `moves.move_elements` with buffers."""
        places = self.builder.element("i32", self.machine.field("places", "ptr"), 4 * WARP_SIZE * FORMS.index(form))
        function = self.machine.field("move_elements", "ptr")
        self.builder.do(f"call void {function}(ptr {values}, ptr {places}, ptr {out})")
