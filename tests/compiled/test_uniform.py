"""Uniform branches of a launch."""

from __future__ import annotations

import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.uniformity import Uniformity
from simtbed.engines.cuda.sass import Instruction


def sass(*texts: str) -> Graph:
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


def branches(*before: str) -> set[int]:
    """Return the uniform branches of a kernel that branches after some instructions."""
    end = 16 * (len(before) + 2)
    return set(Uniformity(sass(*before, f"@P0 BRA 0x{end:x}", "MOV R9, R8", "EXIT")).branches)


@pytest.mark.parametrize(
    "before",
    [
        ("LDC R2, c[0x0][0x4]", "ISETP.GT.AND P0, PT, R2.reuse, RZ, PT"),
        ("ULDC.64 UR4, c[0x0][0x210]", "IMAD R2, R3, UR5, RZ", "ISETP.NE.AND P0, PT, RZ, UR4, PT"),
        ("LDC R2, c[0x0][0x4]", "ISETP.GT.AND P1, PT, R2, RZ, PT", "ISETP.GT.AND P0, PT, R2, 0x20, P1"),
    ],
)
def test_what_follows_from_constants_is_uniform(before: tuple[str, ...]) -> None:
    assert branches(*before) == {0}


@pytest.mark.parametrize(
    "before",
    [
        ("S2R R2, SR_TID.X", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R2, c[0x0][0x4]", "S2R R3, SR_TID.X", "ISETP.GT.AND P0, PT, R2, R3, PT"),
        (
            "LDC R2, c[0x0][0x4]",
            "S2R R3, SR_TID.X",
            "ISETP.GT.AND P1, PT, R3, RZ, PT",
            "ISETP.GT.AND P0, PT, R2, 0x20, P1",
        ),
        ("LDC R2, c[0x0][0x4]", "@P1 MOV R2, RZ", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R2, c[0x0][0x4]", "LDS.64 R2, [R4]", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R3, c[0x0][0x4]", "LDS.64 R2, [R4]", "ISETP.GT.AND P0, PT, R3, RZ, PT"),
    ],
)
def test_values_from_threads_or_memory_are_not_uniform(before: tuple[str, ...]) -> None:
    assert branches(*before) == set()


def test_what_two_instructions_may_have_written_is_not_uniform() -> None:
    whole = sass(
        "S2R R3, SR_TID.X",
        "LDC R2, c[0x0][0x4]",
        "ISETP.GT.AND P1, PT, R3, RZ, PT",
        "@P1 BRA 0x50",
        "MOV R2, RZ",
        "ISETP.GT.AND P0, PT, R2, RZ, PT",
        "@P0 BRA 0x80",
        "MOV R9, R8",
        "EXIT",
    )
    assert Uniformity(whole).branches == frozenset()


def test_a_callee_writes_what_it_writes() -> None:
    def called(written: str) -> frozenset[int]:
        return Uniformity(
            sass(
                "LDC R2, c[0x0][0x4]",
                "CALL.REL.NOINC 0x60",
                "ISETP.GT.AND P0, PT, R2, RZ, PT",
                "@P0 BRA 0x50",
                "MOV R9, R8",
                "EXIT",
                f"MUFU.RCP {written}, R4",
                "RET.REL.NODEC R6 0x0",
            )
        ).branches

    assert called("R5") == {1}
    assert not called("R2")
