"""Textbook kernels: NumPy's answers, at the size of the counters and at every size and block of the times."""

from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed import LaunchError
from simtbed.reports.hardware.cases import find
from simtbed.reports.hardware.launches import Timed

from tests.validation.kernels import KERNELS, ValidationKernel
from tests.validation.launches.kinds import cases
from tests.validation.recorded import KERNEL_CASES

ALL_KERNELS = pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
LEAST = 60
SWEEPS = 15


def check_launch(case: Timed, check: str = "") -> None:
    """Launch a case on the emulator, and compare its answer."""
    args = dict(case.make())
    result = st.launch(
        case.kernel, grid=case.grid, block=case.block, args=args, shared=case.shared, check=check or (), counters=False
    )
    case.check(args, {**args, **result.buffers})


@ALL_KERNELS
def test_outputs_of_counted_launches(kernel: ValidationKernel) -> None:
    check_launch(kernel.small, "all")


@ALL_KERNELS
def test_outputs_in_every_block(kernel: ValidationKernel) -> None:
    """The smallest size; a launch with a wrong answer has no time."""
    for block in kernel.blocks:
        check_launch(kernel.at(kernel.sizes[0], block))


def test_names_and_numbers_of_launches() -> None:
    launches = [case for one in KERNELS for case in one.timed()]
    names = [*(case.name for case in launches), *(case.name for case in cases())]
    assert len(KERNELS) >= LEAST and len({one.name for one in KERNELS}) == len(KERNELS)
    assert len(set(names)) == len(names), "a launch is timed twice"
    assert sum(len(one.sizes) for one in KERNELS if len(one.blocks) > 1) >= SWEEPS
    assert [case.name for case in find([KERNEL_CASES])] == [f"validation {one.name}" for one in KERNELS]


def test_inputs_are_the_same_each_time() -> None:
    for kernel in KERNELS[::10]:
        first, second = kernel.small.make(), kernel.small.make()
        assert all(np.array_equal(first[name], second[name]) for name in first)


def test_wrong_outputs_are_errors() -> None:
    """One different integer, a relative error of 1e-3 of a float, a missing element of an unordered array."""
    by_name = {one.name: one.small for one in KERNELS}
    for name, array, spoil in (
        ("histogram_matched", "out", lambda x: x + (np.arange(len(x)) == 5)),
        ("matmul_tiled", "out", lambda x: x + 1e-3 * x.max() * (np.arange(len(x)) == 5)),
        ("fft_stage", "out", lambda x: x * (1 + 1e-3j)),
        ("hash_insert", "table", lambda x: np.where(x == x.max(), 1, x)),
    ):
        case = by_name[name]
        args = dict(case.make())
        left = {**args, **st.launch(case.kernel, grid=case.grid, block=case.block, args=args).buffers}
        case.check(args, left)
        with pytest.raises(LaunchError, match=f"{array} is not what NumPy computes"):
            case.check(args, {**left, array: spoil(left[array]).astype(left[array].dtype)})
    particles = by_name["move_particles"]
    args = dict(particles.make())
    with pytest.raises(LaunchError, match="particles is not"):
        particles.check(args, args)
    replace(particles, answer=None).check(args, {})  # without an answer nothing is compared
