"""Constant propagation: bank layout, values, unreachable edges."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled.constant_bank import BankLayout, ConstantPropagation
from simtbed.compiled.control_flow import graph
from simtbed.compiled.executions import executions_of
from simtbed.compiled.kernel_launches import printed_kernels
from simtbed.engines.cuda.sass import Instruction
from simtbed.language.hints import Global, i32
from simtbed.profiler.launch import Launch
from simtbed.runtime.observing import observing
from simtbed.runtime.recording import Recorder

from tests.compiled.listings import launched, placed

STACK = "LDC R1, c[0x0][0x28]"


def never(*before: str, **constants: int) -> set[tuple[int, int]]:
    """Return the unreachable edges of a kernel that branches to its third block after some instructions. c4: number at offset 0x4."""
    end = 16 * (len(before) + 2)
    texts = (*before, f"@P0 BRA 0x{end:x}", "MOV R9, R8", "EXIT")
    bank = dict[int, int]()
    for name, value in constants.items():
        bank |= enumerate(value.to_bytes(4, "little", signed=True), int(name[1:], 16))
    return set(
        ConstantPropagation(
            graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts))), bank
        ).unreachable_edges
    )


@pytest.mark.parametrize(
    ("texts", "layout"),
    [
        (("MOV R1, c[0x0][0x28]",), BankLayout(0x0, 0xC, 0x160)),
        (("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]",), BankLayout(0x0, 0xC, 0x160)),
        (("S2R R2, SR_TID.X", STACK), BankLayout(0x0, 0xC, 0x210)),
        (("LDC R1, c[0x0][0x37c]",), BankLayout(0x360, 0x370, 0x380)),
        (("EXIT",), None),
    ],
)
def test_the_stack_pointer_reveals_the_bank_layout(texts: tuple[str, ...], layout: BankLayout | None) -> None:
    assert BankLayout.detect([Instruction(16 * n, text) for n, text in enumerate(texts)]) == layout


def test_parameters_are_aligned() -> None:
    numbers = [np.int8(-1), None, np.int16(2), np.float64(1.0), np.int32(7)]
    bank = BankLayout(0, 12, 0x40).bank((32, 4, 1), (7, 1, 1), numbers)
    words = {at: int.from_bytes(bytes(bank[at + n] for n in range(4)), "little") for at in (0, 4, 12, 0x5C, 0x60)}
    assert words == {0: 32, 4: 4, 12: 7, 0x5C: 0x3FF00000, 0x60: 7}
    assert (bank[0x40], bank[0x50], 0x48 in bank, 0x41 in bank) == (255, 2, False, False)


@pytest.mark.parametrize(
    ("before", "outcome"),
    [
        (("LDC R2, c[0x0][0x4]", "ISETP.GT.AND P0, PT, R2, RZ, PT"), True),
        (("ISETP.LT.AND P0, PT, RZ, c[0x0][0x4], PT",), True),
        (("LDC R2, c[0x0][0x8]", "ISETP.LT.U32.AND P0, PT, R2, 0x4, PT"), False),
        (("LDC R2, c[0x0][0x8]", "ISETP.LT.AND P0, PT, R2, 0x4, PT"), True),
        (("LDC.64 R2, c[0x0][0x4]", "ISETP.EQ.AND P0, PT, R3, -0x3, PT"), True),
        (("LDC.U8 R2, c[0x0][0x8]", "ISETP.EQ.AND P0, PT, R2, 0xfd, PT"), True),
        (("LDC R2, c[0x0][0x4]", "IMAD R3, R2, R2, -R2", "ISETP.NE.AND P0, PT, R3, 0x38, PT"), False),
        (("LDC R2, c[0x0][0x4]", "IADD3 R3, R2, -0x1, RZ", "ISETP.GE.AND P0, PT, R3, 0x7, PT"), True),
        (
            (
                "ULDC UR4, c[0x0][0x4]",
                "UISETP.GE.AND UP0, UPT, UR4, 0x9, UPT",
                "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
            ),
            False,
        ),
        (
            ("LDC R2, c[0x0][0x4]", "ISETP.GT.AND P1, PT, R2, 0x9, PT", "ISETP.EQ.OR P0, PT, R2, 0x1, !P1"),
            True,
        ),
        (("LDC R2, c[0x0][0x4]", "ISETP.GT.AND P1, P0, R2, 0x9, PT"), True),
    ],
)
def test_what_is_made_of_constants_is_computed(before: tuple[str, ...], outcome: bool) -> None:
    assert never(*before, c4=8, c8=-3) == {(0, 1) if outcome else (0, 2)}


@pytest.mark.parametrize(
    "before",
    [
        ("LDC R2, c[0x0][0xc]", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R2, c[0x0][R3+0x4]", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R2, c[0x0][0x4]", "IMAD.HI R3, R2, R2, RZ", "ISETP.GT.AND P0, PT, R3, RZ, PT"),
        ("S2R R2, SR_TID.X", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
        ("LDC R2, c[0x0][0x4]", "@P1 MOV R2, RZ", "ISETP.GT.AND P0, PT, R2, RZ, PT"),
    ],
)
def test_what_is_not_known_excludes_nothing(before: tuple[str, ...]) -> None:
    assert never(*before, c4=8) == set()


def test_numbers_of_launches_are_kept_without_arrays() -> None:
    """Known bytes are those common to all launches."""
    args = {"x": np.arange(40, dtype=np.int32), "out": st.zeros(32, st.i32)}
    launches_observed = list[Launch]()
    with observing(Recorder(launches_observed.append, keep="program")):
        for step, blocks in ((32, 1), (32, 2), (5, 2)):
            st.launch(striding, grid=blocks, block=32, args={**args, "step": np.int32(step)})
    launch_requests = [one.request for one in launches_observed]
    assert all(request is not None and request.arguments.keys() == {"step"} for request in launch_requests)

    def common_bytes(*which: int) -> dict[int, int]:
        requests = [request for n in which if (request := launch_requests[n]) is not None]
        (launches,) = printed_kernels([(request, None, None) for request in requests])
        return launches.bank(BankLayout(0x0, 0xC, 0x210))

    words = [
        {at: bank.get(at) for at in (0x0, 0xC, 0x220)}
        for bank in (common_bytes(0), common_bytes(0, 1), common_bytes(1, 2), common_bytes(0, 2))
    ]
    assert words == [
        {0x0: 32, 0xC: 1, 0x220: 32},
        {0x0: 32, 0xC: None, 0x220: 32},
        {0x0: 32, 0xC: 2, 0x220: None},
        {0x0: 32, 0xC: None, 0x220: None},
    ]
    assert 0x210 not in common_bytes(0)


# ------------------------------------------------------------------ a loop that is compiled twice
@st.kernel
def striding(x: Global[i32], out: Global[i32], step: i32) -> None:
    t = st.thread.x
    total = 0
    for k in range(t, 40, step):
        total += x[k]
    out[t] = total


def test_a_loop_with_a_step_argument_uses_the_copy_of_its_sign() -> None:
    """Lanes have two iterations, or one from lane 8 on, in either copy of the loop."""
    launches = launched(striding, x=np.arange(40, dtype=np.int32), out=st.zeros(32, st.i32), step=np.int32(32))
    line, loop = "x[", "for ("
    rows = [
        (STACK, ""),
        ("LDC R2, c[0x0][0x220]", loop),
        ("ISETP.GT.AND P0, PT, R2, RZ, PT", loop),
        ("@P0 BRA 0x80", loop),
        ("LDG.E R3, [R4]", line),
        ("IADD3 R6, R6, R2, RZ", loop),
        ("@P1 BRA 0x40", loop),
        ("BRA 0xb0", loop),
        ("LDG.E R3, [R4]", line),
        ("IADD3 R6, R6, R2, RZ", loop),
        ("@P1 BRA 0x80", loop),
        ("STG.E [R8], R3", "out["),
        ("EXIT", ""),
    ]
    result = executions_of(placed(launches, *rows), launches)
    assert (result.threads[4], result.threads[8]) == (0, 40)
    assert not result.uncertainty
