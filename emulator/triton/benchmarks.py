"""Benchmarks of `triton.testing` without a GPU: the predicted time of the launches of a function on the current device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import triton.testing
from triton import knobs

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

    estimates: with the name of the kernel, in the order of launches.
    """

    engine: EngineName | None = None
    device: Device | None = None
    estimates: list[tuple[str, Estimate]] = field(default_factory=list)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        estimated = estimate(observe(call.request), call.request.device, cold=True)
        self.estimates.append((call.kernel.__name__, estimated))
        return proceed(call)


def predicted(
    measure: Callable[..., Any], fn: Callable[[], Any], *positions: Any, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean", **options: Any,
) -> Any:  # fmt: skip
    """Return the predicted milliseconds of the launches of `fn`, which is called once; without a launch, what `measure` returns.

    With TRITON_PRINT_AUTOTUNING, the time of each launch is printed with its interval. Raises SimtbedError for a launch without
    a prediction.
    """
    timer = Timer()
    with observing(timer):
        fn()
    if not timer.estimates:
        return measure(fn, *positions, quantiles=quantiles, return_mode=return_mode, **options)
    for name, launch in timer.estimates if knobs.autotuning.print else ():
        interval = f"{launch.low_us:,.2f} to {launch.high_us:,.2f}"
        print(
            printable(f"{name}: {launch.time_us:,.2f} us predicted ({interval}), bound by {launch.bound}"), flush=True
        )
    times = [sum(one.time_us for _, one in timer.estimates) / 1000]
    return triton.testing._summarize_statistics(times, quantiles, return_mode)


def replace_benchmarks() -> None:
    """Have the benchmarks of Triton return predicted times."""
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, partial(predicted, getattr(triton.testing, name)))
