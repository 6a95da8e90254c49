"""Translation of a program to an LLVM module: a function for each run of straight-line code, and one that executes runs."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..llvm.compiler import ModuleText
from .counts import TRACE_ARGUMENTS
from .groups import AWAIT, NUMBERS, Groups
from .machine import FIELDS, Machine
from .operands import UnsupportedInstruction
from .steps import Step
from .traced import Untranslatable

ENTRY = "execute"
"""The function that executes runs."""
WILD = -3
"""The largest of its results for a wild address, of instruction 0; the others follow downwards."""


def starts_of(steps: Sequence[Step]) -> list[int]:
    """Return the instructions that a run of straight-line code may begin with: after control instructions, their targets, and
    those that suspended warps repeat."""
    index = {step.op.offset: n for n, step in enumerate(steps)}
    starts = {0}
    for n, step in enumerate(steps):
        if step.control is not None:
            starts |= {n + 1, n} if step.control.kind == AWAIT else {n + 1}
            listed = step.op.instruction.text.partition("BRANCH_TARGETS")[2]
            targets = [one.number for one in step.op.operands if one.kind == "integer"]
            targets += [int(one, 16) for one in re.findall("0x[0-9a-f]+", listed)]
            starts |= {index[one] for one in targets if one in index}
    return sorted(one for one in starts if one < len(steps))


@dataclass
class _Module:
    """Functions of a module. ends: by first instruction of translated straight-line code, the instruction behind it. selected:
    translated control instructions."""

    functions: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    constants: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    selected: set[int] = field(default_factory=set)

    def add(self, machine: Machine, name: str, result: str) -> None:
        self.functions += machine.text(name, result)
        self.declared |= machine.builder.declared
        for bank, size in machine.constants.items():
            self.constants[bank] = max(self.constants.get(bank, 0), size)

    def add_run(self, steps: Sequence[Step], first: int, limit: int) -> None:
        """Translate straight-line code up to a control instruction or a limit."""
        machine, n = Machine(), first
        try:
            while n < limit and steps[n].control is None:
                machine.step(steps[n])
                n += 1
        except (Untranslatable, UnsupportedInstruction):
            return
        self.add(machine, f"run_{first}", "0")
        self.ends[first] = n

    def add_control(self, n: int, step: Step) -> None:
        """Translate the selection of a control instruction."""
        machine = Machine()
        try:
            result = machine.control(step)
        except (Untranslatable, UnsupportedInstruction):
            return
        self.add(machine, f"select_{n}", result)
        self.selected.add(n)

    def complete(self) -> list[int]:
        """Return the starts of runs that are translated up to and with their control instruction."""
        result: list[int] = []
        for first in sorted(self.ends, reverse=True):
            if self.ends[first] in self.selected or self.ends[first] in result:
                result.append(first)
        return result


def module_of(steps: Sequence[Step]) -> tuple[bytes, ModuleText]:
    """Return the module of a program; with it, as JSON, the instructions where translated runs start and the bytes of
    constant banks that they read."""
    module, starts = _Module(), starts_of(steps)
    for first, limit in zip(starts, [*starts[1:], len(steps)], strict=True):
        module.add_run(steps, first, limit)
    for n, step in enumerate(steps):
        if step.control is not None:
            module.add_control(n, step)
    complete = module.complete()
    text = "\n".join([*_trace(), _TRACE_UNITS, *module.functions, *_driver(module, complete)])
    metadata = json.dumps([complete, list(module.constants.items())])
    return metadata.encode(), ModuleText(text, {}, sorted(module.declared), "")


def _trace() -> list[str]:
    """Return the function that passes an access to the trace of a launch, if there is one."""
    lines = [
        "define internal void @trace(ptr %s, i64 %warp, i64 %n, ptr %index, ptr %active) nounwind noinline {",
        "entry:",
    ]
    for name in ("trace", "trace_arguments"):
        lines += [
            f"  %{name}.at = getelementptr i64, ptr %s, i64 {FIELDS.index(name)}",
            f"  %{name} = load ptr, ptr %{name}.at",
        ]
    lines += [
        "  %none = icmp eq ptr %trace, null", "  br i1 %none, label %out, label %on", "out:", "  ret void", "on:",
        "  %warps = alloca i64", "  store i64 %warp, ptr %warps",
    ]  # fmt: skip
    for n in range(TRACE_ARGUMENTS):
        lines += [f"  %p{n} = getelementptr i64, ptr %trace_arguments, i64 {n}", f"  %a{n} = load i64, ptr %p{n}"]
    fixed = ", ".join(f"i64 %a{n}" for n in range(TRACE_ARGUMENTS))
    call = f"  call void %trace({fixed}, i64 %n, ptr %warps, i64 1, ptr %index, ptr %active)"
    return [*lines, call, "  ret void", "}"]


_TRACE_UNITS = """
define internal void @trace_units(ptr %s, i64 %warp, i64 %n, ptr %units) nounwind noinline {
entry:
  %count = load i64, ptr %units
  %active = alloca <32 x i8>
  br label %again
again:
  %at = phi i64 [ 0, %entry ], [ %next, %some ]
  %left = sub i64 %count, %at
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %some, label %out
some:
  %few = icmp slt i64 %left, 32
  %most = select i1 %few, i64 %left, i64 32
  %none.left = sub i64 32, %most
  %short = trunc i64 %none.left to i32
  %bits = lshr i32 -1, %short
  %lanes = bitcast i32 %bits to <32 x i1>
  %flags = zext <32 x i1> %lanes to <32 x i8>
  store <32 x i8> %flags, ptr %active
  %next = add i64 %at, 32
  %place = add i64 %at, 1
  %index = getelementptr i64, ptr %units, i64 %place
  call void @trace(ptr %s, i64 %warp, i64 %n, ptr %index, ptr %active)
  br label %again
out:
  ret void
}"""
"""The function that passes the units of a bulk copy to the trace, 32 at a time."""


def _driver(module: _Module, complete: Sequence[int]) -> list[str]:
    """Return the function that executes runs until it encounters one that is not translated.

    Its result is that of `convergence.begin_run`, or WILD less the number of an instruction with a wild address.
    """
    if not complete:
        return [f"define i64 @{ENTRY}(ptr %s) nounwind {{", "  ret i64 0", "}"]
    own = ("begin_run", "end_run", "table", "rows", "row_lanes", "chosen", "values", "awaited_threads")
    names = (*own, *Groups._fields)
    types = {name: "i64" if name in NUMBERS else "ptr" for name in Groups._fields}
    groups = ", ".join(f"{types[name]} %{name}" for name in Groups._fields)
    arguments = "ptr %s, i64 %warp, ptr %row.lanes, ptr %row.values, ptr %row.awaited_threads"
    ends = sorted({module.ends[first] for first in complete} & module.selected)
    lines = [f"define i64 @{ENTRY}(ptr %s) nounwind {{", "entry:"]
    for name in names:
        lines += [
            f"  %{name}.at = getelementptr i64, ptr %s, i64 {FIELDS.index(name)}",
            f"  %{name} = load {types.get(name, 'ptr')}, ptr %{name}.at",
        ]
    lines += [
        "  %rows.count = getelementptr i64, ptr %rows, i64 %warps",
        "  br label %begin", "begin:",
        f"  %first = call i64 %begin_run({groups}, ptr %rows, ptr %row_lanes)",
        "  %count = load i64, ptr %rows.count",
        f"  switch i64 %first, label %leave [ {' '.join(f'i64 {first}, label %iteration' for first in complete)} ]",
        "leave:", "  ret i64 %first", "iteration:",
        f"  %i = phi i64 {', '.join(['[ 0, %begin ]'] * len(complete))}, [ %next, %selected ]",
        "  %row = getelementptr i64, ptr %rows, i64 %i", "  %warp = load i64, ptr %row", "  %lane = shl i64 %i, 5",
        "  %row.lanes = getelementptr i8, ptr %row_lanes, i64 %lane", "  %row.values = getelementptr i64, ptr %values, i64 %lane",
        "  %row.awaited_threads = getelementptr i64, ptr %awaited_threads, i64 %lane",
        f"  switch i64 %first, label %leave [ {' '.join(f'i64 {first}, label %at{first}' for first in complete)} ]",
    ]  # fmt: skip
    for first in complete:
        end = module.ends[first]
        lines += [
            f"at{first}:", f"  %e{first} = call i64 @run_{first}({arguments})",
            f"  %wrong{first} = icmp ne i64 %e{first}, 0",
            f"  br i1 %wrong{first}, label %failed, label %{'select' if end in module.selected else 'at'}{end}",
        ]  # fmt: skip
    for end in ends:
        lines += [f"select{end}:", f"  %c{end} = call i64 @select_{end}({arguments})", "  br label %selected"]
    return [
        *lines, "failed:", f"  %e = phi i64 {', '.join(f'[ %e{first}, %at{first} ]' for first in complete)}",
        f"  %failure = sub i64 {WILD + 1}, %e", "  ret i64 %failure",
        "selected:", f"  %c = phi i64 {', '.join(f'[ %c{end}, %select{end} ]' for end in ends)}",
        f"  %n = phi i64 {', '.join(f'[ {end}, %select{end} ]' for end in ends)}",
        "  %to = getelementptr i64, ptr %chosen, i64 %i", "  store i64 %c, ptr %to",
        "  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %count", "  br i1 %more, label %iteration, label %finish",
        "finish:",
        f"  call void %end_run({groups}, ptr %table, i64 %n, ptr %rows, i64 %count, ptr %chosen, ptr %values, ptr %awaited_threads)",
        "  br label %begin", "}",
    ]  # fmt: skip
