"""Benchmarks of `triton.testing` without a GPU: the predicted time of the launches of a function on the current device."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import triton.testing
from triton import knobs

from ..errors import SimtbedError
from ..escaping import printable
from ..machine.device import Device
from ..model.launches import observe
from ..model.time import Estimate, estimate
from ..runtime.observing import NextLaunch, PendingLaunch, observing
from ..runtime.registry import EngineName
from ..runtime.result import LaunchDetails


@dataclass
class Timer:
    """An observer that predicts the time of each launch with an empty L2, as the benchmarks of Triton measure it.

    estimates: with the name of the kernel, in the order of launches; the reason for one without a prediction. It is "" for a checked
    launch: its findings do not depend on the time.
    """

    engine: EngineName | None = None
    device: Device | None = None
    estimates: list[tuple[str, Estimate | str]] = field(default_factory=list)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        estimated: Estimate | str = ""
        try:
            if not call.request.checks:
                estimated = estimate(observe(call.request), call.request.device, cold=True)
        except SimtbedError as error:  # a fault, too: the launch itself reports it
            estimated = str(error).partition("\n")[0]
        self.estimates.append((call.kernel.__name__, estimated))
        return proceed(call)


def predicted(
    measure: Callable[..., Any], fn: Callable[[], Any], *positions: Any, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean", **options: Any,
) -> Any:  # fmt: skip
    """Return the predicted milliseconds of the launches of `fn`, which is called once; without a launch, what `measure` returns.

    The time of a launch without a prediction is infinite, and its reason is printed: `triton.autotune` takes its first configuration.
    With TRITON_PRINT_AUTOTUNING, the time of each launch is printed with its interval.
    """
    timer = Timer()
    with observing(timer):
        fn()
    if not timer.estimates:
        return measure(fn, *positions, quantiles=quantiles, return_mode=return_mode, **options)
    time = 0.0  # us
    for name, launch in timer.estimates:
        if isinstance(launch, str):
            time, words = math.inf, f"no predicted time: {launch}"
        else:
            time += launch.time_us
            interval = f"{launch.low_us:,.2f} to {launch.high_us:,.2f}"
            words = f"{launch.time_us:,.2f} us predicted ({interval}), bound by {launch.bound}"
        if launch and (knobs.autotuning.print or isinstance(launch, str)):
            print(printable(f"{name}: {words}"), flush=True)
    if math.isinf(time) and quantiles:  # the interpolation of Triton's quantiles gives no number
        return [time] * len(quantiles) if len(quantiles) > 1 else time
    return triton.testing._summarize_statistics([time / 1000], quantiles, return_mode)


def replace_benchmarks() -> None:
    """Have the benchmarks of Triton return predicted times."""
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, partial(predicted, getattr(triton.testing, name)))
