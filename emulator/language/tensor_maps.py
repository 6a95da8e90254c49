"""Forms of tensor maps: the layout of a tensor in global memory, and the box of a copy (`cp.async.bulk.tensor`)."""

import math
from dataclasses import dataclass
from typing import Literal

from .types import BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar

Swizzle = Literal[0, 32, 64, 128]
Fill = Literal["zero", "nan"]
MAX_RANK, MAX_BOX, MAX_SIZE, MAX_STRIDE = 5, 256, 1 << 31, 1 << 40
UNIT = 16  # bytes, of strides and of a row of the box
SHARED_ALIGNMENT = 128  # bytes
MAP_BYTES = 128
SWIZZLES: tuple[Swizzle, ...] = (0, 32, 64, 128)
"""In the order of CUtensorMapSwizzle."""
ELEMENTS = (U8, U16, U32, I32, U64, I64, F16, F32, F64, BF16, I8, I16)
"""Elements, the first ten in the order of CUtensorMapDataType; the others are copied as unsigned numbers."""
FIRST_ELEMENT, SIZES, STRIDES, WORDS = 0, 1, 6, 16
"""Words of u64 of a tensor map that a kernel makes: the index of its first element, its sizes, its strides; and their number."""
OOB_NAN = {F16: 0x7FF7, BF16: 0x7FF7, F32: 0x7FF77FF7, F64: 0x7FF77FF77FF77FF7}
"""Bits of an element beyond the tensor, with the fill "nan": those of an H200, which repeats 16 bits. BF16 and F64 were not measured."""


@dataclass(frozen=True)
class TensorMapForm:
    """A tensor of elements. sizes, box: elements by dimension, the innermost first. strides: bytes from one index to the next, by
    dimension from the second on. swizzle: bytes of the span whose units of 16 bytes are permuted; 0 for none. fill: of elements
    beyond the tensor."""

    element: Scalar
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: Swizzle = 0
    fill: Fill = "zero"

    @property
    def bytes(self) -> int:
        """The bytes of a box."""
        return math.prod(self.box) * self.element.size

    @property
    def length(self) -> int:
        """The elements from the first to the last of the tensor."""
        steps = (1, *(stride // self.element.size for stride in self.strides))
        return 1 + sum((n - 1) * step for n, step in zip(self.sizes, steps, strict=True))

    def problem(self) -> str:
        """Return the rule of the hardware that the form breaks, "" for none. Dimensions are counted from the innermost, 0."""
        rank, row = len(self.sizes), self.box[0] * self.element.size if self.box else 0
        if not 1 <= rank <= MAX_RANK or len(self.box) != rank:
            return f"a tensor map has 1 to {MAX_RANK} dimensions and a box of as many, not {rank} and {len(self.box)}"
        for d, (size, extent) in enumerate(zip(self.sizes, self.box, strict=True)):
            if not 1 <= size < MAX_SIZE:
                return f"the size of dimension {d} is 1 ... 2^31 - 1, not {size}"
            if not 1 <= extent <= MAX_BOX:
                return f"the box of dimension {d} is 1 ... {MAX_BOX}, not {extent}"
        for d, stride in enumerate(self.strides, 1):
            if stride % UNIT or not 0 < stride < MAX_STRIDE:
                return f"the stride of dimension {d} is a positive multiple of {UNIT} bytes below 2^40, not {stride}"
        if row % UNIT:
            return f"a row of the box is a multiple of {UNIT} bytes, not {row}"
        if self.swizzle and row != self.swizzle:  # the place of shorter rows is not documented
            return f"a row of the box is the {self.swizzle} bytes of the swizzle, not {row}"
        return 'fill="nan" is of floats' if self.fill == "nan" and not self.element.is_float else ""
