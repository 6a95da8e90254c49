"""Parameters of an LLVM function as its caller describes them, and the result of a translation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..ir import nodes as ir
from ..language.tensor_maps import TensorMapForm
from ..language.textures import SurfaceForm
from ..language.types import Array, Scalar


@dataclass(frozen=True)
class ScalarParameter:
    """A number. type: its type in the program, with the size of the LLVM type; bool for an i1 or i8."""

    name: str
    type: Scalar


@dataclass(frozen=True)
class ArrayParameter:
    """A pointer to the first element of a global array.

    element: the element type; None for records and complex numbers, of which each scalar becomes a view. size: bytes of an
    element. offset: whether the array may extend before its first element (negative strides).
    address: as a number; 0 if only the launch knows it.
    """

    name: str
    element: Scalar | None
    size: int
    offset: bool = False
    address: int = 0


@dataclass(frozen=True)
class AddressParameter:
    """A pointer that is passed as an address of a device."""

    name: str


@dataclass(frozen=True)
class StructParameter:
    """A structure of numbers. Their arguments follow those of all parameters of the function, in order."""

    items: tuple[ScalarParameter, ...]


@dataclass(frozen=True)
class ConstantParameter:
    """A number known before the launch."""

    value: int
    type: Scalar


@dataclass(frozen=True)
class TextureParameter:
    """The handle of a texture or a surface, or the address of a tensor map. form: None for a placeholder."""

    name: str
    form: SurfaceForm | TensorMapForm | None


@dataclass(frozen=True)
class UnusedPointer:
    """A pointer whose memory does not exist here. Stores to it are dropped; other accesses are refused."""

    name: str = ""


Parameter = (
    ScalarParameter
    | StructParameter
    | ArrayParameter
    | AddressParameter
    | ConstantParameter
    | TextureParameter
    | UnusedPointer
)


@dataclass(frozen=True)
class ArrayView:
    """An array parameter of the program: elements of one type in the memory of a pointer.

    parameter: index of the `ArrayParameter`; None for a captured address. address: of a captured array, else 0. phase: bytes from
    the pointer to an element, 0 <= phase < element.size. symbol: of a variable of the module, which has no parameter.
    """

    parameter: int | None
    address: int
    element: Scalar
    phase: int
    symbol: str = ""


@dataclass(frozen=True)
class ScalarSource:
    """The origin of a scalar parameter of the program.

    value: the argument of `parameter`, divided by `divisor` without a remainder. offset: the bytes from the lowest address of the
    array of `parameter` to its first element, divided by `divisor`. address: of the first element.
    """

    parameter: int
    divisor: int = 1
    kind: Literal["value", "offset", "address"] = "value"


@dataclass(frozen=True)
class Translation:
    """A program, and the origin of each of its parameters. Several views of one parameter are the same memory. constants: symbols of
    variables in constant memory by their arrays, whose contents the launch may replace. textures: arrays of textures and surfaces."""

    program: ir.Program
    arrays: Mapping[str, ArrayView]
    scalars: Mapping[str, ScalarSource]
    constants: Mapping[str, str]
    textures: Mapping[str, Array]
