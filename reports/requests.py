"""The launch that a variant makes of its own kernel on a problem, without running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simtbed import Kernel, Result, SimtbedError, launch
from simtbed.kernels import Family, FunctionLauncher, Launcher
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request


def first_request(family: Family[Any], variant: str, problem: Any) -> Request:
    """The first launch of the variant's kernel that solving `problem` would make; what comes before it is emulated."""
    kernel = family.variants[variant].kernel
    return only_request(lambda launcher: family.solve(problem, variant, launcher), kernel)


def only_request(solve: Callable[[Launcher], object], of: Kernel | None = None) -> Request:
    """The first launch that `solve` would make with a launcher, of a kernel where one is named; what comes before is emulated."""

    class Reached(Exception):
        pass

    found: list[Request] = []

    @FunctionLauncher
    def stop(kernel: Kernel, **how: Any) -> Result:
        if of is not None and kernel is not of:
            return launch(kernel, counters=False, **how)
        found.append(prepare_request(kernel, **how))
        raise Reached

    try:
        solve(stop)
    except Reached:
        return found[0]
    raise SimtbedError(f"{of.__name__ if of else 'a kernel'} is not launched on this input")
