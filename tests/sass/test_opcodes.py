"""Conformance of the opcode table: each row with operands and the results of the hardware's definition."""

import re
from typing import Any

import numpy as np
import pytest
from simtbed import devices
from simtbed.sass.batch import Batch
from simtbed.sass.counts import Counts
from simtbed.sass.execution import ROWS, Program, rows_of
from simtbed.sass.groups import FINISHED
from simtbed.sass.operands import UnsupportedInstruction, decode
from simtbed.sass.rows import bind
from simtbed.sass.state import GlobalMemory, State

from tests.sass.programs import instruction, instructions, run
from tests.table_checks import check_each, each_row
from tests.texts import texts

CASES = texts("sass/opcodes.sass")["opcodes"]
"""Instruction | registers before | registers after, in lane 5. fN and dN are floats, lane is the lane's number."""


def value(text: str) -> tuple[Any, bool]:
    """Return the value of a register by lane, and whether it is of 64 bits."""
    lane = np.arange(32)
    named = {"lane": lane, "odd": lane & 1, "half": lane // 16}
    if text in named:
        return named[text], False
    if text[0] == "f":
        return int(np.float32(text[1:]).view(np.uint32)), False
    if text[0] == "d":
        return int(np.float64(text[1:]).view(np.uint64)), True
    return int(text, 0), len(text) == 18


def registers(s: State, name: str) -> Any:
    """Return the array of a register."""
    kind, number = re.fullmatch(r"(U?[RP])(\d+)", name).groups()  # type: ignore[union-attr]
    arrays = {"R": s.registers, "UR": s.uniform_registers, "P": s.predicates, "UP": s.uniform_predicates}
    return arrays[kind][int(number)]


def state_before(before: str) -> State:
    """Return a state with the registers of a case."""
    s = State((1, 1, 1), (32, 1, 1), np.arange(1), 12, 1024, GlobalMemory.allocate({}), {0: bytes(64)})
    for pair in before.split():
        name, _, literal = pair.partition("=")
        number, wide = value(literal)
        if wide:
            registers(s, name)[:] = number & 0xFFFFFFFF
            registers(s, f"R{int(name[1:]) + 1}")[:] = number >> 32
        else:
            registers(s, name)[:] = number
    return s


def check_state(s: State, after: str) -> None:
    """Compare the registers with those of a case."""
    for pair in after.split():
        name, _, expected = pair.partition("=")
        number, wide = value(expected)
        at = min(5, registers(s, name).shape[1] - 1)
        actual = int(registers(s, name)[0, at])
        if wide:
            actual |= int(registers(s, f"R{int(name[1:]) + 1}")[0, at]) << 32
        assert actual == number, f"{name} is {actual:#x}"


ROWS_OF_CASES = CASES.strip().splitlines()


def instruction_text(case: str) -> str:
    return case.rsplit("|", 2)[0].strip()


@each_row(ROWS_OF_CASES)
def test_each_row_computes_what_the_hardware_does(case: str) -> None:
    text, before, after = case.rsplit("|", 2)
    s = state_before(before)
    (step,) = Program.from_listing([instruction(0, text.strip())]).steps
    assert step.execute is not None
    step.execute(s, slice(None), np.ones((1, 32), np.bool_), Counts(devices.H200, np.ones(1, np.bool_), 1))
    check_state(s, after)


@pytest.mark.slow
def test_each_row_has_the_same_results_compiled() -> None:
    """All cases are one program; each is followed by a control instruction."""
    texts = [text for case in ROWS_OF_CASES for text in (instruction_text(case), "EXIT")]
    program = Program.from_listing(instructions(*texts))

    def check_compiled(n: int) -> None:
        _, before, after = ROWS_OF_CASES[n].rsplit("|", 2)
        s = state_before(before)
        batch = Batch(program.steps, s, False)
        batch.groups.address[:] = 2 * n
        code = program.machine_code.bind(batch, Counts(devices.H200, program.ends_run, 1))
        assert code is not None and 2 * n in code.code.starts
        assert code.run() == FINISHED
        check_state(s, after)

    check_each(range(len(ROWS_OF_CASES)), check_compiled)


def test_each_row_has_a_case() -> None:
    tested = set()
    for case in ROWS_OF_CASES:
        op = decode(0, instruction(0, instruction_text(case)))
        tested.add(id(bind(op, rows_of(op)).row))
    untested = [f"{row.opcode}.{row.required}" for rows in ROWS.values() for row in rows if id(row) not in tested]
    assert untested == []


@pytest.mark.parametrize(
    "text",
    [
        "BMOV.32 B0, R1", "IADD3.FOO R0, R1, R2, R3", "FADD R0, R1.H0_H0, R2", "LDG.E.FOO R0, [R2.64]",
        "IADD3 R0, R1, c[0x3][R2+0x4], RZ", "S2R R0, SR_SMEMSZ", "MUFU.FOO R0, R1", "BRXU UR2 -0x10",
        "CALL.ABS.NOINC R2", "BAR.ARV 0x1, 0x40", "QSPC.E.L P0, RZ, [R2]", "PRMT.F4E R0, R1, R2, R3",
        "UBLKCP.S.G.MULTICAST [UR4], [UR6], UR8", "SYNCS.ARRIVE.TRANS64.RED.A0T1 RZ, [RZ], RZ", "SYNCS.FOO R0, [RZ], R0",
        "HGMMA.SP.64x8x32.F32 R24, gdesc[UR4], RZ, !UPT", "HGMMA.64x8x16.F32 R24, gdesc[UR4].foo, RZ, !UPT",
    ],
)  # fmt: skip
def test_what_has_no_row_is_refused_by_name_and_address(text: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=r"at 0x0010"):
        run("NOP", text, "EXIT")


def test_a_refusal_names_the_instruction() -> None:
    with pytest.raises(UnsupportedInstruction, match=r"BMOV\.32 B0, R1 at 0x0010"):
        run("NOP", "BMOV.32 B0, R1", "EXIT")


def test_unused_instructions_without_a_row_are_no_obstacle() -> None:
    run("@!PT BMOV.32 B0, R1", "BRA 0x30", "QSPC.E.S P0, RZ, [R2]", "EXIT")
