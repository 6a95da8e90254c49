"""Words of CUDA C++, Numba, Triton and Python libraries, and their equivalents in the language."""

import ast
import builtins
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

_KNOWN_AS = {
    "numba.cuda": "cuda", "triton.language": "tl", "numpy": "np", "math": "math", "random": "random", "time": "time",
}  # fmt: skip
"""Module aliases used as keys in words.py."""
PYTHON = ("np", "math", "random", "time")
IMPORTS = {
    "math": "import math, or write st.sqrt(x) and so on",
    "np": "import numpy as np",
    "st": "import simtbed as st",
}
"""Modules that kernels use, by their usual names, and how to import them."""


def dotted(node: ast.expr) -> list[str]:
    """Return the names of `a.b.c`; an empty list for any other expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    owner = dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*owner, node.attr] if owner and isinstance(node, ast.Attribute) else []


def advice(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the message and hint for a dotted name of another library; None if it is unknown."""
    from ..language.words import by_name  # late: only errors need it

    for length in range(len(names), 0, -1):
        text, axis = ".".join(names[:length]), names[length - 1]
        key = f"{text[:-1]}x" if axis in ("y", "z") else text
        entry = by_name().get(key) or by_name().get(f"{text}.x")
        if entry is not None:
            origin, word = entry
            ours = word.ours.replace("`", "")
            return f"{text} is a word of {origin}", f"write {ours if key == text else ours.replace('.x', f'.{axis}')}"
    return None


def similar_name(name: str) -> list[str]:
    """Return the name in another library that differs only by underscores and case, such as `atomicCAS` for `atomic_cas`;
    empty without one."""
    from ..language.words import by_name  # late: only errors need it

    text, names = _letters(name), (key.removesuffix(".x") for key in by_name())
    return [key for key in names if "." not in key and _letters(key) == text][:1]


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def names_elsewhere(target: Any) -> list[str]:
    """Return an object's name in another library: `cuda` for numba.cuda, and so on; empty without such a name."""
    if isinstance(target, ModuleType):
        return [_KNOWN_AS[target.__name__]] if target.__name__ in _KNOWN_AS else []
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if isinstance(target, np.ufunc):
        module = "numpy"
    if not isinstance(module, str) or not isinstance(name, str):
        return []
    if getattr(builtins, name, None) is target:
        return [name]
    package = next((alias for full, alias in _KNOWN_AS.items() if (module + ".").startswith(full + ".")), None)
    return [package, name] if package else []


ENGINE = 'the python engine calls it: launch with engine="python"'
"""The hint for a Python function that is called for its effect on the host."""


def for_debugging(target: Any) -> bool:
    """Return whether a function starts a debugger, or is one of the standard library without an equivalent in a kernel."""
    module, name = (str(getattr(target, key, "")) for key in ("__module__", "__name__"))
    is_debugger = name in ("breakpoint", "set_trace")
    return is_debugger or module.partition(".")[0] in sys.stdlib_module_names - {"builtins", *PYTHON}
