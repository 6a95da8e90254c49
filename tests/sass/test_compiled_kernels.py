"""Kernels of nvcc, interpreted with NumPy and compiled: equal outputs, executions, branches and transactions."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
from simtbed import SimtbedError, devices
from simtbed.compiled import device_launch, executed
from simtbed.compiled.kernel import without_padding
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.engines.cuda.sass import disassemble
from simtbed.reports.hardware.recording import RecordingLauncher
from simtbed.sass.execution import execute
from simtbed.testing.conformance import FEATURES

from examples.kernels import matmul_tensor_cores
from tests.compilers import needs_sass
from tests.sass.programs import differing_counts
from tests.table_checks import check_each
from tests.validation.cases import feature_case
from tests.validation.kernels import cases as kernel_cases

NEVER, AT_ONCE = 1 << 60, 0
MOST_INSTRUCTIONS = 10_000
"""Instructions of a warp, of the source, that NumPy executes in about a second."""


def check_kernels(runs: Iterable[Callable[[Any], Any]]) -> None:
    """Execute the printed kernels of cases both ways, without long ones."""
    launcher = RecordingLauncher("jit", devices.H200)
    for run in runs:
        run(launcher)
    kernels = {
        f"{n} {kernel.name}": kernel
        for n, kernel in enumerate(launcher.kernels)
        if 0 < sum(one.instructions / one.request.warps for one in kernel.inputs) <= MOST_INSTRUCTIONS
    }
    check_each(kernels, lambda name: check(kernels[name]))


def executions(kernel: KernelLaunches, compile_after: int, architecture: str = "sm_90") -> executed.Executed | str:
    """Return the counts of a kernel, or the message of an error."""
    compiled = kernel.binary(architecture)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_launch, "execute", partial(execute, compile_after=compile_after))
        try:
            return executed.execute_launches(
                kernel, compiled, without_padding(disassemble(compiled.built.cubin, compiled.interface.kernel))
            )
        except SimtbedError as error:
            return str(error)


def check(kernel: KernelLaunches) -> None:
    interpreted, compiled = executions(kernel, NEVER), executions(kernel, AT_ONCE)
    if isinstance(interpreted, str) or isinstance(compiled, str):
        assert interpreted == compiled
        return
    for name in ("warps", "threads", "traffic"):
        assert np.array_equal(getattr(interpreted, name), getattr(compiled, name)), name
    assert interpreted.differing == compiled.differing
    assert differing_counts(interpreted.first, compiled.first) == []


@needs_sass
@pytest.mark.slow
def test_kernels_of_the_conformance_suite() -> None:
    """Without grid barriers: blocks that wait for others run as many instructions as their order needs."""
    chosen = [one for one in FEATURES if not one.shared and not one.cooperative]
    check_kernels(feature_case(one).run for one in chosen[::6])


@needs_sass
@pytest.mark.slow
def test_validation_kernels() -> None:
    check_kernels(case.run for case in list(kernel_cases())[::16])


@needs_sass
@pytest.mark.slow
def test_tensor_cores() -> None:
    """The outputs have the bits of the jit engine."""
    for architecture, device in (("sm_90", devices.H200), ("sm_80", devices.A100)):
        launcher = RecordingLauncher("jit", device)
        matmul_tensor_cores.product(np.ones((48, 64), np.float16), np.ones((64, 32), np.float16), launcher.launch)
        (kernel,) = launcher.kernels
        result = executions(kernel, NEVER, architecture)
        assert not isinstance(result, str) and result.differing == (), (architecture, result)
