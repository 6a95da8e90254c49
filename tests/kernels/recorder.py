"""A launcher that records its launches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simtbed import Counters, Kernel, Result, launch
from simtbed.kernels import Launcher


@dataclass
class Recorder(Launcher):
    """Launches with a function of the signature of `simtbed.launch`.

    kernels, options, results: names, arguments of `launch`, and results of the launches, in order.
    """

    function: Callable[..., Result] = launch
    kernels: list[str] = field(default_factory=list)
    options: list[Mapping[str, Any]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        self.kernels.append(kernel.__name__)
        self.options.append(arguments)
        self.results.append(self.function(kernel, **arguments))
        return self.results[-1]

    def arguments(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the values of kernel arguments of each launch that has them."""
        launches = [how["args"] for how in self.options]
        return [tuple(args[name] for name in names) for args in launches if names[0] in args]

    def counters(self) -> dict[str, Counters]:
        """Return the counters of each kernel, summed over its launches."""
        by_kernel: dict[str, Counters] = {}
        for kernel, result in zip(self.kernels, self.results, strict=True):
            before = by_kernel.get(kernel)
            by_kernel[kernel] = before + result.counters if before else result.counters
        return by_kernel
