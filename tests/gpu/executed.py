"""Kernels with CUDA's own mathematical functions on a GPU, beside the execution of their SASS: `python -m tests.gpu.executed`.

The kernels are the rows of the op table, the features, the examples and the validation kernels that call a function.
`--engine sass` compares the execution with itself, without a GPU.
"""

import argparse
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import chain
from typing import Any

import numpy as np
from simtbed import LaunchError, Result, SimtbedError, launch
from simtbed.compiled.answer import executed_arrays
from simtbed.engines.cuda.engine import CudaEngine
from simtbed.ir.op import BITS
from simtbed.kernels import Launcher
from simtbed.reports.hardware.cases import Case, OperationCase
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.testing.answers import rounds

from tests.validation import cases
from tests.validation import kernels as validation

EMULATED = "sm_90"


@dataclass
class ExecutedLauncher(Launcher):
    """A launcher that compares each launch of a kernel with functions."""

    engine: str
    compared: int = 0
    elements: int = 0
    problems: list[str] = field(default_factory=list)

    def launch(self, kernel: Any, **arguments: Any) -> Result:
        request = prepare_request(kernel, **{"counters": False, **arguments})
        if rounds(request.program):
            self.compare(request)
        return launch(kernel, **arguments)

    def compare(self, request: Request) -> None:
        """Compare the arrays of a launch that do not depend on the order of threads."""
        request = replace(request, maths="native", counters=False)
        executed = executed_arrays(request, EMULATED)
        if executed is None:
            self.problems.append(f"{request.program.kernel.name} is not executed")
            return
        native = executed if self.engine == "sass" else CudaEngine().run(request).buffers
        for name in executed.keys() - request.prepared.order_dependent.keys():
            unequal = int((~BITS.agree(native[name], executed[name])).sum())
            self.elements += np.size(executed[name])
            if unequal:
                self.problems.append(f"{name} of {request.program.kernel.name}: {unequal:,} elements differ")
        self.compared += 1


def kernels() -> Iterator[Case | OperationCase]:
    """Yield the cases; most of them call no function."""
    return chain(cases.operations(), cases.cases(), validation.cases())


def compare(case: Case | OperationCase, engine: str) -> ExecutedLauncher:
    """Run a case; its launches continue on the jit engine."""
    launcher = ExecutedLauncher(engine)
    try:
        with redirect_stdout(StringIO()):
            if isinstance(case, OperationCase):
                request, _ = case.prepare()
                if rounds(request.program):
                    launcher.compare(request)
            else:
                case.run(launcher)
    except (LaunchError, SimtbedError) as error:
        launcher.problems.append(str(error).splitlines()[0])
    return launcher


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("cuda", "sass"), default="cuda")
    engine = parser.parse_args().engine
    equal = total = elements = 0
    for case in kernels():
        result = compare(case, engine)
        if not result.compared and not result.problems:
            continue
        total, elements = total + 1, elements + result.elements
        equal += not result.problems
        for problem in result.problems:
            print(f"{case.name}: {problem}", flush=True)
    print(f"{equal} of {total} cases that call functions have the bits of their executed SASS; {elements:,} elements")


if __name__ == "__main__":
    main()
