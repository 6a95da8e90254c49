"""LLVM's passes over texts of LLVM IR, before their translation."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from .reader import Reader, unquoted
from .text import NAMED_TYPE
from .types import leaves, size_of

PASSES = (
    "always_inliner", "sroa", "simplify_cfg", "instruction_combine", "sroa", "simplify_cfg", "sccp",
    "instruction_combine", "dead_store_elimination", "simplify_cfg", "aggressive_dce", "simplify_cfg", "global_dead_code_eliminate",
)  # fmt: skip
"""Passes of llvmlite that remove structures in local memory and calls. They preserve loops: none is unrolled or vectorised."""

INLINING = ("always_inliner", "global_dead_code_eliminate")
TAIL_CALLS = (*("sroa", "simplify_cfg", "tail_call_elimination", "always_inliner") * 2, *INLINING)
"""Passes in place of INLINING for a module with recursion: calls at the end of their own function become loops, then those at the end
of two functions that call each other."""
STATEMENT_PASSES = (
    "sroa", "sccp", "always_inliner", "sroa", "loop_simplify", "lcssa", "loop_unroll", "sroa", "sccp",
    "aggressive_dce", "global_dead_code_eliminate",
)  # fmt: skip
"""Passes that keep the accesses and the branches of each statement, and the dimensions of arrays in addresses. Loops are unrolled where
the source requests it. LLVM's `simplifycfg` is none of them: it merges stores of several branches."""

_FUNCTION = re.compile(r"^define [^\n]*\{\n(?:[^ \n][^\n]*\n)?", re.MULTILINE)
"""The head of a function and the label of its first block."""
_CALLED = re.compile(r"^define internal .*\)(?: (?:local_)?unnamed_addr)?", re.MULTILINE)
"""The head of a function other than the entry, up to its attributes."""
_DEFINED = re.compile(r"^define [^\n@]*@([\w.$]+)\(", re.MULTILINE)
_CALL = re.compile(r"\bcall [^\n@]*@([\w.$]+)\(")
_ALLOCA = re.compile(r"^  %[^\n]* = alloca [^%\n]*\n", re.MULTILINE)
"""An alloca of a constant size."""


def optimised(texts: Sequence[str], entry: str, passes: Sequence[str] = PASSES) -> str:
    """Return the modules as one, with all calls inlined into the entry function, after these passes of llvmlite."""
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
    # Both attributes exclude `alwaysinline`.
    text = str(module).replace(" noinline ", " ").replace(" optnone ", " ")
    text = _CALLED.sub(r"\g<0> alwaysinline", text)  # llvmlite before 0.48 adds attributes to the result of a function
    module = llvm.parse_assembly(_with_first_allocas(text))
    builder = llvm.create_pass_builder(_target_machine(), llvm.create_pipeline_tuning_options(speed_level=1))
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    return str(module)


def has_recursion(text: str) -> bool:
    """Return whether a module calls functions that it defines: after INLINING, those that call themselves."""
    names = set(_DEFINED.findall(text))
    return any(own in names for own in _CALL.findall(text))


def _with_first_allocas(text: str) -> str:
    """Move allocas of a constant size to the first block of their function: SROA replaces no others."""

    def moved(body: str) -> str:
        allocas = _ALLOCA.findall(body)
        return "".join(allocas) + _ALLOCA.sub("", body) if allocas else body

    sections, end = [], 0
    for match in _FUNCTION.finditer(text):
        close = text.index("\n}\n", match.end() - 1)
        sections += [text[end : match.end()], moved(text[match.end() : close + 1])]
        end = close + 1
    return "".join([*sections, text[end:]])


def _target_machine() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_90")


# ------------------------------------------------------------------ copies of structures
_ADDRESS = r"(?:align (\d+) )?((?:[^,()]|\((?:[^()]|\([^()]*\))*\))+)"
_COPY = re.compile(
    rf"  call void @llvm\.mem(?:cpy|move)\.p0\.p0\.i64\(ptr {_ADDRESS}, ptr {_ADDRESS}, i64 (\d+), i1 false\)(?: #\d+)?(.*)"
)
_TYPED = re.compile(r'  (%[\w.$-]+|%"[^"]*") = (?:alloca |getelementptr (?:\w+ )*)(%[\w.$:]+|%"[^"]*"|\[.*?\]), (.*)')
_MAX_PIECES = 64
"""Accesses of a copy that is written as loads and stores."""


def with_separate_copies(text: str) -> str:
    """Return a module in which copies of structures in unoptimised code are loads and stores of their fields.

    A structure whose alignment is above that of its fields, such as `float4`, is copied by vectors: one access each.
    """
    lines = text.splitlines()
    named = {unquoted(match[1]): match[2] for line in lines if (match := NAMED_TYPE.match(line))}
    types: dict[str, str] = {}  # of the memory at an address, in a function
    out = list[str]()
    for number, line in enumerate(lines):
        if line.startswith("define "):
            types.clear()
        elif typed := _TYPED.fullmatch(line):
            is_field = typed[3].count(", i") != (2 if typed[2][0] == "[" else 1) and not typed[3].startswith("align")
            if not is_field:
                types[typed[1]] = re.sub(r"^\[\d+ x (.*)\]$", r"\1", typed[2]) if ", i" in typed[3] else typed[2]
        if (copy := _COPY.fullmatch(line)) is None:
            out.append(line)
            continue
        source_type = types.get(copy[2]) or types.get(copy[4], "")
        pieces = _pieces(source_type, named, int(copy[5]), min(int(copy[1] or 1), int(copy[3] or 1), 16))
        if len(pieces) > _MAX_PIECES:
            out.append(line)
            continue
        place = re.search(r", !dbg !\d+", copy[6])
        suffix = f", align {min(int(copy[1] or 1), int(copy[3] or 1))}{place[0] if place else ''}"
        stores = list[str]()
        for piece, (offset, type) in enumerate(pieces):
            name = f"%simtbed.copy.{number}.{piece}"
            end = _at_offset(suffix, offset)
            out.append(f"  {name}.from = getelementptr i8, ptr {copy[4]}, i64 {offset}")
            out.append(f"  {name} = load {type}, ptr {name}.from{end}")
            stores.append(f"  {name}.to = getelementptr i8, ptr {copy[2]}, i64 {offset}")
            stores.append(f"  store {type} {name}, ptr {name}.to{end}")
        out += stores
    return "\n".join(out) + "\n"


def _at_offset(suffix: str, offset: int) -> str:
    """Return the end of an access with the alignment that an offset leaves."""
    return re.sub(r"align (\d+)", lambda m: f"align {min(int(m[1]), offset & -offset or int(m[1]))}", suffix)


def _pieces(type: str, named: Mapping[str, str], size: int, unit: int) -> list[tuple[int, str]]:
    """Return the offset and the type of each access of a copy. type: of the memory; "" if it is unknown."""
    fields = list(leaves(Reader(type, named).type())) if type else []
    if not fields or size_of(Reader(type, named).type()) != size:
        while size % unit:
            unit //= 2
        own = "<4 x i32>" if unit == 16 else f"i{8 * unit}"
        return [(offset, own) for offset in range(0, size, unit)]
    sizes, kinds = {size_of(leaf) for _, leaf in fields}, {str(leaf) for _, leaf in fields}
    lane = next(iter(sizes))
    if len(sizes) == 1 and unit > lane and size % unit == 0 and size == lane * len(fields) and "ptr" not in kinds:
        kind = next(iter(kinds)) if len(kinds) == 1 else f"i{8 * lane}"
        return [(offset, f"<{unit // lane} x {kind}>") for offset in range(0, size, unit)]
    return [(offset, str(leaf)) for offset, leaf in fields]
