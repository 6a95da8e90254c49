"""Interfaces of printed kernels: names and sizes for a launch, without the text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...language.tensor_maps import TensorMapForm
from ...language.types import SCALARS
from ...own_code import OwnArgument

Tensors = tuple[tuple[str, TensorMapForm], ...]
"""Arrays of a kernel that it takes as tensor maps, and their forms."""


@dataclass(frozen=True)
class Interface:
    """The call interface of a printed kernel.

    kernel: its name in C++. arguments: the program's parameters in the order of the kernel's; they precede
    `lengths`: arrays whose number of elements it takes, as int. written: the global arrays it may change.
    carved_bytes: dynamic shared memory that the launch must add for the kernel's shared arrays, if they are too large
    together to be static. cooperative: whether its blocks wait for the grid. packing: the parameters of the kernel's own
    code; None for a printed kernel. tensors: its arrays that are tensor maps.
    """

    kernel: str
    arguments: tuple[str, ...]
    lengths: tuple[str, ...]
    written: frozenset[str]
    carved_bytes: int
    cooperative: bool
    packing: tuple[OwnArgument, ...] | None = None
    tensors: Tensors = ()

    def encode(self) -> dict[str, object]:
        tensors = [(name, _encoded(form)) for name, form in self.tensors]
        packing = self.packing and [{**asdict(one), "form": _encoded(one.form)} for one in self.packing]
        return {**asdict(self), "written": sorted(self.written), "tensors": tensors, "packing": packing}

    @staticmethod
    def decode(data: dict[str, Any]) -> Interface:
        """Return the interface written by `encode`, from JSON."""
        packing = data["packing"]
        names = {name: tuple(data[name]) for name in ("arguments", "lengths")}
        return Interface(
            **{
                **data,
                **names,
                "written": frozenset(data["written"]),
                "tensors": tuple((name, _form(form)) for name, form in data["tensors"]),
                "packing": None if packing is None else tuple(map(_argument, packing)),
            }
        )


def _encoded(form: object) -> dict[str, Any] | None:
    return asdict(form) | {"element": form.element.name} if isinstance(form, TensorMapForm) else None


def _form(data: dict[str, Any]) -> TensorMapForm:
    lists = {name: tuple(data[name]) for name in ("sizes", "strides", "box")}
    return TensorMapForm(**{**data, **lists, "element": SCALARS[data["element"]]})


def _argument(data: dict[str, Any]) -> OwnArgument:
    lists = {name: tuple(map(tuple, data[name])) for name in ("contents", "terms")}
    return OwnArgument(**{**data, **lists, "form": data["form"] and _form(data["form"])})
