"""The header that precedes a CUDA C++ text: files of `headers/`, and one declaration for each CUDA name in the table of operations."""

from __future__ import annotations

import re
from functools import cache

from ..ir.ops import CUDA_NAMES, TABLE
from ..language.types import BOOL, Scalar
from .header_files import FOLDER

_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_OF_THE_PRINTER = {"floor_div", "floor_mod", "frexp_fraction", "frexp_exponent"}
"""Helpers that the printer of CUDA C++ defines in its own text."""
_ROUNDED = {
    "__fadd_rn": "add", "__fsub_rn": "sub", "__fmul_rn": "mul", "__fdiv_rn": "fdiv", "__fmaf_rn": "fma", "__fsqrt_rn": "sqrt",
    "__frsqrt_rn": "rsqrt", "__dadd_rn": "add", "__dsub_rn": "sub", "__dmul_rn": "mul", "__ddiv_rn": "fdiv", "__fma_rn": "fma",
    "__dsqrt_rn": "sqrt",
}  # fmt: skip
"""Names of operations that are rounded to nearest, with their rows. A name with f is of f32, with d of f64."""


@cache
def operations() -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return by CUDA name the row of the table, and for each argument of a call the operand of the row."""
    rows = {name: (row, places) for name, _, _, row, places in _declared()}
    rows |= {name: (row, tuple(range(TABLE[row].operands))) for name, row in _ROUNDED.items()}
    return rows | {f"__simtbed_{row}": (row, (0,)) for row in ("frexp_fraction", "frexp_exponent")}


@cache
def _declared() -> tuple[tuple[str, tuple[Scalar, ...], Scalar, str, tuple[int, ...]], ...]:
    """Return name, types of the arguments, result, row and operands of each function that a row is spelled as."""
    results: dict[
        tuple[str, tuple[object, ...], Scalar], tuple[str, tuple[Scalar, ...], Scalar, str, tuple[int, ...]]
    ] = {}
    for row in TABLE.values():
        for type in row.types:
            match = _CALL.fullmatch(row.spelling(type))
            small = type.is_integer and type.size < 4 and not row.name.startswith("as_")
            if match is None or match[1] in _OF_THE_PRINTER or small or type is BOOL:
                continue
            places = tuple(int(n) for n in re.findall(r"\{(\d)\}", match[2]))
            operands = row.operand_types(type)
            types, result = tuple(operands[n] for n in places), row.result_type(type)
            # CUDA declares one of int and unsigned; both would make a call with a long ambiguous.
            sizes = tuple(t.size if t.is_integer else t for t in types)
            results.setdefault((match[1], sizes, result), (match[1], types, result, row.name, places))
    return tuple(results.values())


@cache
def device_header() -> str:
    """Return the header that precedes every text."""
    lines = [(FOLDER / "device.h").read_text(encoding="utf-8")]
    names = {name for name, *_ in _declared()}
    lines += [_declaration(name, types, result) for name, types, result, _, _ in _declared()]
    for name, row in _ROUNDED.items():
        type = "double" if name.startswith("__d") or name == "__fma_rn" else "float"
        lines.append(f"SIMTBED_INTRINSIC {type} {name}({', '.join([type] * TABLE[row].operands)});")
    for type in ("float", "double"):
        lines.append(f"SIMTBED_INTRINSIC {type} __simtbed_frexp_fraction({type});")
        lines.append(f"SIMTBED_INTRINSIC int __simtbed_frexp_exponent({type});")
    for name, types, _, _, _ in _declared():
        if types and all(t.name == "f64" or not t.is_float for t in types) and f"{name}f" in names:
            lines.append(_single(name, types))
    lines.append((FOLDER / "derived.h").read_text(encoding="utf-8"))
    words = sorted(n for n in names if not n.startswith("__"))
    lines.append("namespace std { " + " ".join(f"using ::{n};" for n in words) + " using ::pow; using ::abs; }")
    return "\n".join(lines)


def _declaration(name: str, types: tuple[Scalar, ...], result: Scalar) -> str:
    return f"SIMTBED_INTRINSIC {CUDA_NAMES[result]} {name}({', '.join(CUDA_NAMES[t] for t in types)});"


def _single(name: str, types: tuple[Scalar, ...]) -> str:
    """Return the overload for float of a function of double: C++ has both under one name."""
    letters = "abc"[: len(types)]
    declared = ", ".join(f"{'float' if t.is_float else CUDA_NAMES[t]} {x}" for t, x in zip(types, letters, strict=True))
    return f"SIMTBED_INLINE float {name}({declared}) {{ return {name}f({', '.join(letters)}); }}"
