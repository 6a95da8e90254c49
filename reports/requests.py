"""The launch that a variant makes of its own kernel on a problem, without running it."""

from __future__ import annotations

from typing import Any

from simtbed import Kernel, Result, SimtbedError, launch
from simtbed.kernels import Family, FunctionLauncher
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request


def first_request(family: Family[Any], variant: str, problem: Any) -> Request:
    """The first launch of the variant's kernel that solving `problem` would make; what comes before it is emulated."""

    class Reached(Exception):
        pass

    found: list[Request] = []

    @FunctionLauncher
    def stop(kernel: Kernel, **how: Any) -> Result:
        if kernel is not family.variants[variant].kernel:
            return launch(kernel, counters=False, **how)
        found.append(prepare_request(kernel, **how))
        raise Reached

    try:
        family.solve(problem, variant, stop)
    except Reached:
        return found[0]
    raise SimtbedError(f"{variant} launches no kernel on this input")
