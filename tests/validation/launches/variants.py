"""Timed launches of the shipped variants: the first launch on the example of their family."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from simtbed import DeviceArray, Kernel, Result, launch
from simtbed.kernels import FAMILIES, Family, FunctionLauncher
from simtbed.reports.hardware.launches import Timed


def variants() -> Iterator[Timed]:
    """Yield one launch for each variant: "FAMILY VARIANT example". Earlier launches are emulated."""
    for family in FAMILIES.values():
        for variant in family.variants:
            yield _first(family, variant)


def _first(family: Family[Any], variant: str) -> Timed:
    class FirstLaunch(Exception):
        pass

    launches: list[Timed] = []

    @FunctionLauncher
    def stop(kernel: Kernel, **how: Any) -> Result:
        if kernel is not family.variants[variant].kernel:
            return launch(kernel, counters=False, **how)
        args = {name: v.numpy() if isinstance(v, DeviceArray) else v for name, v in how["args"].items()}
        name = f"{family.name} {variant} example"
        launches.append(Timed(name, kernel, how["grid"], how["block"], lambda: args, how.get("shared", 0)))
        raise FirstLaunch

    with suppress(FirstLaunch):
        family.solve(family.example(), variant, stop)
    return launches[0]
