"""Launcher that groups its launches by printed kernel."""

from dataclasses import dataclass, field
from typing import Any

from simtbed import Device, Kernel, Result, devices, launch
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.engines.cuda.printer import cuda_source
from simtbed.kernels import Launcher
from simtbed.runtime.registry import EngineName, row_of
from simtbed.runtime.result import details_of


@dataclass
class RecordingLauncher(Launcher):
    """A launcher on one engine with a list of its launches in order, grouped by printed kernel."""

    engine: EngineName
    device: Device = devices.H200
    order: list[KernelLaunches] = field(default_factory=list)

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        keep = row_of(self.engine).emulates
        result = launch(
            kernel, engine=self.engine, device=self.device, maths="native", **{"compiled": keep, **arguments}
        )
        details = details_of(result)
        request = details.request
        source = cuda_source(request.program, request.block, cluster=request.cluster)
        earlier = next((one for one in self.order if one.source.text == source.text), None)
        launched = earlier or KernelLaunches(request)
        self.order.append(launched)
        launched.add(request, details.counts, details.memory)
        return result

    @property
    def kernels(self) -> list[KernelLaunches]:
        """Each printed kernel once, in the order of first launches."""
        return list({id(launched): launched for launched in self.order}.values())
