"""Comparison of the kernels of a run with the baselines of a file; differences are findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Diagnostic, Launch, Run, SimtbedError
from simtbed.kernels.files import contents
from simtbed.span import Span
from simtbed.testing.budgets import KIND, Baselines, check_limits, compiled, judged
from simtbed.testing.figures import Figures, figures

from .running import setup_kernels, without_setup_kernels
from .target import Shipped, Target


@dataclass
class Budgets:
    """The baselines of a file, and the measured values, by target and kernel.

    soft, hard: limits in percent, as in the fixture `budget`. compiled: whether to compare registers, spills and local
    memory too. update: whether to write the measured values to the file.
    """

    baselines: Baselines
    soft: float = 0.0
    hard: float = 0.0
    compiled: bool = False
    update: bool = False
    measured: dict[str, dict[str, Figures]] = field(default_factory=dict)

    @staticmethod
    def from_options(path: Path | None, soft: float, hard: float, compiled: bool, update: bool) -> Budgets | None:
        """Return the baselines that the options name, if any. Raises SimtbedError for options that exclude each other."""
        if path is None:
            if soft or hard or compiled or update:
                raise SimtbedError("--soft, --hard, --compiled and --update-budget need the file of --budget")
            return None
        check_limits(soft, hard)
        if update and os.environ.get("CI"):
            raise SimtbedError("--update-budget is refused if CI is set: baselines are only compared")
        if not update and not path.is_file():
            raise SimtbedError(f"{path}: No such file; --update-budget writes it")
        return Budgets(Baselines.read(path), soft, hard, compiled, update)

    def compare(self, target: Target | str, run: Run) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """Compare the kernels of a target, or of a saved run by its name, with their baselines.

        Return the faults, beyond a limit, and the remarks, within the hard limit only. Setup kernels of a family are
        compared once, under the name of the family.
        """
        if not isinstance(target, Shipped):
            return self._compare(str(target), run)
        results = [self._compare(target.name, without_setup_kernels(run, target))]
        setup = setup_kernels(run, target)
        if target.family.name not in self.measured and setup.launches:
            results.append(self._compare(target.family.name, setup))
        faults, remarks = zip(*results, strict=True)
        return list(chain(*faults)), list(chain(*remarks))

    def _compare(self, target: str, run: Run) -> tuple[list[Diagnostic], list[Diagnostic]]:
        faults: list[Diagnostic] = []
        remarks: list[Diagnostic] = []
        baselines = self.baselines.metrics.get(target, {})
        groups = run.by_kernel()
        for name, profile in run.profiles().items():
            launches = groups[name]
            blocks = ((int(np.prod(launch.block)), launch.shared_bytes) for launch in launches)
            now = figures(profile, blocks, self._compiled(launches))
            self.measured.setdefault(target, {})[name] = now
            place = launches[0].kernel.span
            if self.update:
                continue
            if name not in baselines:
                message = f"{name} of {target} has no baseline in {self.baselines.path}: --update-budget writes it"
                faults.append(Diagnostic(KIND, message, place))
            elif verdict := judged(baselines[name], now, profile, self.soft, self.hard):
                within = f"is within its hard limit of {self.hard} %"
                result = verdict.outcome("--update-budget") if verdict.over else within
                message = f"{name} of {target} {result}"
                finding = Diagnostic(KIND, message, verdict.place or place, tuple(verdict.lines))
                (faults if verdict.over else remarks).append(finding)
        return faults, remarks

    def _compiled(self, launches: Iterable[Launch]) -> dict[str, Any] | None:
        """Return the resources of the compiled kernels; each specialisation is compiled once."""
        if not self.compiled:
            return None
        requests = {(one.request.specialisation, one.block, one.device): one.request for one in launches}
        return compiled(requests.values())

    def _unused_baselines(self, is_complete: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return target and kernel of the baselines without a launch, among targets with all launches compared."""
        return [
            (target, name)
            for target, kernels in self.baselines.metrics.items()
            if is_complete(target)
            for name in kernels
            if name not in self.measured.get(target, {})
        ]

    def unused(self, is_complete: Callable[[str], bool]) -> list[Diagnostic]:
        """Return a finding for each unused baseline, at its line of the file."""
        return [self._unused(target, name) for target, name in self._unused_baselines(is_complete)]

    def _unused(self, target: str, name: str) -> Diagnostic:
        path = str(self.baselines.path)
        lines = contents(self.baselines.path).decode().splitlines()
        heads = (n for n, line in enumerate(lines, 1) if line.startswith("[") and target in line and name in line)
        line = next(heads, 1)
        return Diagnostic(KIND, f"not used any more: {name} of {target}", Span(path, line, 1, line, 2))

    def text(self, is_complete: Callable[[str], bool]) -> str:
        """Return the updated text of the file."""
        return self.baselines.merged(self.measured, self._unused_baselines(is_complete)).removesuffix("\n")
