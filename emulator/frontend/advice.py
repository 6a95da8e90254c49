"""What to write instead of a value that does not fit where it stands."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np

from .constants import Tuple
from .foreign import closest
from .values import ArrayValue, Host, Value

LISTED = "docs/language.md lists every word"
ARRAY_FIRST = "give the array and the index apart: x, i"


def advice_for(value: Value) -> str:
    """What to write where a number, or something with an index, is expected and this value stands."""
    match value:
        case ArrayValue():
            return f"write an element: {value.name}[i]"
        case Tuple():
            return "write an item: t[0]"
        case Host(object=list() | set() | dict()):
            return "make it a tuple, which cannot change"
        case Host(object=np.ndarray()):
            return "give it to the launch as a Global array, or make it a tuple"
        case Host(object=str()):
            return "texts stand in print(...), assert and ord(...) alone"
        case Host(object=None):
            return "what is called gives nothing: write it as a statement of its own"
        case Host():
            return f"write {value.name}.x, {value.name}.y or {value.name}.z" if value.is_index else "write a number"
    return "write a number, or an array's element"


def no_attribute(value: Value, name: str) -> tuple[str, ...]:
    """What to write instead of an attribute that a value does not have."""
    if isinstance(value, Host):
        target = value.object
        if isinstance(target, type) and hasattr(target, name):
            return (f"write a constant of the module: {name} = {target.__name__}.{name}",)
        known = [f.name for f in fields(target)] if is_dataclass(target) else list(getattr(target, "_fields", ()))
        near = closest(name, known or [n for n in dir(target) if not n.startswith("_")])
        return (f"do you mean {near}?" if near else "write a constant of the module",)
    return ("a number has no attributes: write an operation of it",)
