"""The first launch request of a variant's kernel on a problem, without its execution."""

from collections.abc import Callable
from typing import Any

from simtbed import Kernel, Result, SimtbedError, launch
from simtbed.kernels import Family, FunctionLauncher, Launcher
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request


def first_request(family: Family[Any], variant: str, problem: Any) -> Request:
    """Return the first launch of the variant's kernel on `problem`. Launches of other kernels before it are emulated."""
    kernel = family.variants[variant].kernel
    return only_request(lambda launcher: family.solve(problem, variant, launcher), kernel)


def only_request(solve: Callable[[Launcher], object], kernel: Kernel | None = None) -> Request:
    """Return the first launch of `solve`, or its first launch of `kernel`; launches before it are emulated."""

    class FirstLaunch(Exception):
        pass

    requests: list[Request] = []

    @FunctionLauncher
    def stop(launched: Kernel, **settings: Any) -> Result:
        if kernel is not None and launched is not kernel:
            return launch(launched, counters=False, **settings)
        requests.append(prepare_request(launched, **settings))
        raise FirstLaunch

    try:
        solve(stop)
    except FirstLaunch:
        return requests[0]
    raise SimtbedError(f"{kernel.__name__ if kernel else 'a kernel'} is not launched on this input")
