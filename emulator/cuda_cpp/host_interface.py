"""The host interface of a lowered kernel: its signature, and the variables outside of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..frontend.signature import KernelParameter, RecordParameter, Signature
from ..language.types import Array, Vector
from .declaration import Alias, HostInterface, HostParameter, OutsideVariable
from .lowering import LoweredKernel, constant_element, initial_bytes
from .types import CType, RecordType, components, scalar_leaves, size_of
from .values import Memory


def host_interface(
    lowered: LoweredKernel, parameters: tuple[HostParameter, ...], aliases: Mapping[str, Alias]
) -> HostInterface:
    """Return the interface of a kernel with these parameters, of which `aliases` have no memory of their own."""
    signature: dict[str, KernelParameter] = {}
    for parameter in parameters:
        name = parameter.name
        if name in lowered.arrays or not parameter.is_address:
            signature[name] = _parameter(parameter, lowered.arrays.get(name))
        elif name not in aliases:  # it is never accessed
            signature[name] = KernelParameter(None)
    constants, variables = {}, {}
    for name, variable in lowered.constants.items():
        element = constant_element(variable.type)
        signature[name] = KernelParameter(Array(element, None, "constant"))
        constants[name] = OutsideVariable(variable.symbol, element, initial_bytes(variable))
    for name, memory in lowered.arrays.items():
        signature.setdefault(name, KernelParameter(Array(memory.element, None, "global")))
        if memory.variable is not None:
            variables[name] = OutsideVariable(memory.variable.symbol, memory.element, initial_bytes(memory.variable))
    return HostInterface(Signature(signature), constants, variables)


def _parameter(parameter: HostParameter, memory: Memory | None) -> KernelParameter:
    """Return a parameter by value, or a pointer to memory."""
    name, type = parameter.name, parameter.type
    if memory is not None:
        return KernelParameter(Array(memory.element, None, "global"), accepts=_accepted(memory.declared))
    if isinstance(type, RecordType | Vector):
        pieces = tuple(("@:".join((name, *path)), path, kind) for path, kind, _ in scalar_leaves(type))
        return KernelParameter(RecordParameter(str(type), pieces))
    return KernelParameter(cast(Any, type))


def _accepted(type: CType) -> tuple[str, ...]:
    """Return the element types of arrays that a pointer to a type accepts, in NumPy's words; structs are accepted by their size."""
    kinds = sorted({kind.name for kind in components(type)})
    return (f"V{size_of(type)}", *kinds) if isinstance(type, RecordType | Vector) else tuple(kinds)
