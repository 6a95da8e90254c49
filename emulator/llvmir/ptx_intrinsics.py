"""NVVM's intrinsics of PTX instructions: the instruction of each, whose operands are the call's in order."""

import re
from functools import lru_cache

from .assembly import Statement
from .module import Instruction
from .types import VOID, PointerType, StructType

_TYPES = {"f": "f32", "d": "f64", None: "f32", "i": "s32", "ui": "u32", "ll": "s64", "ull": "u64"}
_FORMS = tuple((re.compile(rf"llvm\.nvvm\.{form}"), name) for form, name in (
    (r"(ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh)\.approx(\.ftz)?(?:\.(\w+))?", "{0}.approx{1}.{t2}"),
    (r"div\.(full|approx)(\.ftz)?(?:\.(\w+))?", "div.{0}{1}.{t2}"),
    (r"(add|mul|fma)\.(r[zmp])(\.ftz)?\.f", "{0}.{1}{2}.f32"),
    (r"d2f\.(r[nzmp])(?:\.ftz)?", "cvt.{0}.f32.f64"),
    (r"rcp\.rn(\.ftz)?\.(f|d)", "rcp.rn{0}.{t1}"),
    (r"(f|d)2(i|ui|ll|ull)\.(r[nzmp])(?:\.ftz)?", "cvt.{2}i.{t1}.{t0}"),
    (r"(f2|ff2)(b?f16(?:x2)?)\.(r[nz])", "cvt.{2}.{1}.f32"),
    (r"(i|ui|ll|ull)2(f|d)\.rn", "cvt.rn.{t1}.{t0}"),
    (r"(ld|st)matrix\.sync\.aligned\.m8n8\.(x[124])(\.trans)?\.b16(?:\.p3)?", "{0}matrix.sync.aligned.m8n8.{1}{2}.shared.b16"),
    (r"redux\.sync\.(min|max|add)", "redux.sync.{0}.s32"),
    (r"redux\.sync\.u(min|max)", "redux.sync.{0}.u32"),
    (r"redux\.sync\.(and|or|xor)", "redux.sync.{0}.b32"),
    (r"cp\.async\.(c[ag])\.shared\.global\.(?:\d+)(?:\.s)?", "cp.async.{0}.shared.global"),
    (r"cp\.async\.(bulk\.)?(commit|wait)\.(group|all)(\.read)?", "cp.async.{0}{1}_{2}{3}"),
    (r"mbarrier\.(init|inval|arrive)(?:\.shared)?", "mbarrier.{0}.shared.b64"),
    (r"mbarrier\.test\.wait(?:\.shared)?", "mbarrier.test_wait.shared.b64"),
    (r"prmt", "prmt.b32"),
    (r"elect\.sync", "elect.sync"),
    (r"fence\.proxy\.async(?:\.shared_cta)?", "fence.proxy.async.shared::cta"),
    (r"wgmma\.(fence|commit_group)\.sync\.aligned", "wgmma.{0}.sync.aligned"),
))  # fmt: skip
"""Names of intrinsics, and the instruction with the groups of the name; `t` is a type."""


@lru_cache(maxsize=512)
def _name(function: str) -> str:
    for form, name in _FORMS:
        if match := form.fullmatch(function):
            groups = match.groups()
            words = [group or "" for group in groups]
            return name.format(*words, **{f"t{n}": _TYPES.get(group, group) for n, group in enumerate(groups)})
    return ""


def intrinsic_statement(call: Instruction) -> Statement | None:
    """Return the PTX instruction of a call; None for other functions. Its operands are $0, $1, ..., the results first."""
    name = _name(call.function)
    if not name:
        return None
    count = 0 if call.type == VOID else len(call.type.items) if isinstance(call.type, StructType) else 1
    results = [f"${number}" for number in range(count)]
    operands = []
    for number, operand in enumerate(call.operands, count):
        operands.append(f"[${number}]" if isinstance(operand.type, PointerType) else f"${number}")
    if name.startswith("cp.async.c") and "shared" in name:
        operands.insert(2, re.findall(r"\d+", call.function)[-1])
    if name.startswith(("ldmatrix", "stmatrix")):
        results = [f"{{{', '.join(results)}}}"] * (count > 0)
        operands[1:] = [f"{{{', '.join(operands[1:])}}}"] * (len(operands) > 1)
    if name == "elect.sync":
        results = ["|".join(results)]
    if name.startswith("redux"):
        operands = [operands[0], operands[1]]
    return Statement(name, (*results, *operands))
