"""The header that precedes a CUDA C++ text: files of `headers/`, and one declaration for each CUDA name in the table of operations."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from ..ir.maths import APPROXIMATE
from ..ir.ops import CUDA_NAMES, TABLE
from ..language.types import BOOL, F32, F64, I32, Scalar
from .header_files import FOLDER

_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_OF_THE_PRINTER = {"floor_div", "floor_mod", "frexp_fraction", "frexp_exponent", *APPROXIMATE}
"""Helpers defined in the text of the printer of CUDA C++."""
_ROUNDED = {
    "__fadd_rn": "add", "__fsub_rn": "sub", "__fmul_rn": "mul", "__fdiv_rn": "fdiv", "__fmaf_rn": "fma", "__fsqrt_rn": "sqrt",
    "__frsqrt_rn": "rsqrt", "__dadd_rn": "add", "__dsub_rn": "sub", "__dmul_rn": "mul", "__ddiv_rn": "fdiv", "__fma_rn": "fma",
    "__dsqrt_rn": "sqrt", "__tanhf": "fast_tanh",
}  # fmt: skip
"""Names of operations rounded to nearest, and of an instruction, with their rows. A name with f is of f32, with d of f64."""
_INSTRUCTIONS = {"rsqrtf": "fast_rsqrt"}
"""Functions that nvcc compiles to an approximate instruction, with its row."""


@cache
def _declared() -> tuple[tuple[str, tuple[Scalar, ...], Scalar, str], ...]:
    """Return name, types of the arguments, result and declaration of each function that a row is spelled as."""
    results: dict[tuple[str, tuple[object, ...], Scalar], tuple[str, tuple[Scalar, ...], Scalar, str]] = {}
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
            declared = _operation(match[1], _INSTRUCTIONS.get(match[1], row.name), type, types, result, places)
            results.setdefault((match[1], sizes, result), (match[1], types, result, declared))
    return tuple(results.values())


@cache
def device_header() -> str:
    """Return the header that precedes every text."""
    lines = [(FOLDER / "device.h").read_text(encoding="utf-8")]
    names = {name for name, *_ in _declared()}
    lines += [declared for *_, declared in _declared()]
    for name, row in _ROUNDED.items():
        type = F64 if name.startswith("__d") or name == "__fma_rn" else F32
        lines.append(_operation(name, row, type, [type] * TABLE[row].operands, type, range(TABLE[row].operands)))
    for type in (F32, F64):
        lines.append(_operation("__simtbed_frexp_fraction", "frexp_fraction", type, [type], type, (0,)))
        lines.append(_operation("__simtbed_frexp_exponent", "frexp_exponent", type, [type], I32, (0,)))
    for name, types, _, _ in _declared():
        if types and all(t.name == "f64" or not t.is_float for t in types) and f"{name}f" in names:
            lines.append(_single(name, types))
    lines += [(FOLDER / name).read_text(encoding="utf-8") for name in ("derived.h", "texture.h")]
    words = sorted(n for n in names - {"min", "max"} if not n.startswith("__"))
    lines.append("namespace std { " + " ".join(f"using ::{n};" for n in words) + " using ::pow; using ::abs; }")
    lines.append("#ifndef SIMTBED_PROGRAM  // it has those of C++\nnamespace std { using ::min; using ::max; }\n#endif")
    return "\n".join(lines)


def _operation(
    name: str, row: str, type: Scalar, types: Sequence[Scalar], result: Scalar, places: Iterable[int]
) -> str:
    """Return the declaration of a function of a row of the table. places: for each argument the operand of the row."""
    arguments = ", ".join(CUDA_NAMES[t] for t in types)
    label = f"simtbed.op.{row}.{type}.{''.join(map(str, places))}"
    return f'SIMTBED_PURE {CUDA_NAMES[result]} {name}({arguments}) __asm__("{label}");'


def _single(name: str, types: tuple[Scalar, ...]) -> str:
    """Return the overload for float of a function of double: C++ has both under one name."""
    letters = "abc"[: len(types)]
    declared = ", ".join(f"{'float' if t.is_float else CUDA_NAMES[t]} {x}" for t, x in zip(types, letters, strict=True))
    return f"SIMTBED_INLINE float {name}({declared}) {{ return {name}f({', '.join(letters)}); }}"
