"""LLVM's passes over texts of LLVM IR, before their translation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

PASSES = (
    "always_inliner", "sroa", "simplify_cfg", "instruction_combine", "sroa", "simplify_cfg", "sccp",
    "instruction_combine", "dead_store_elimination", "simplify_cfg", "aggressive_dce", "simplify_cfg", "global_dead_code_eliminate",
)  # fmt: skip
"""Passes of llvmlite that remove structures in local memory and calls. They preserve loops: none is unrolled or vectorised."""

_FUNCTION = re.compile(r"^define [^\n]*\{\n(?:[^ \n][^\n]*\n)?", re.MULTILINE)
"""The head of a function and the label of its first block."""
_CALLED = re.compile(r"^define internal .*\)(?: (?:local_)?unnamed_addr)?", re.MULTILINE)
"""The head of a function other than the entry, up to its attributes."""
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
