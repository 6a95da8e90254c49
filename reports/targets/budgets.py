"""The kernels of a run held to the baselines of a file, as findings."""

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

from .running import own, preparing
from .target import Shipped, Target


@dataclass
class Budgets:
    """The baselines of a file by target and kernel, and what is measured. soft, hard: limits in percent, as the fixture
    `budget` has them. compiled: whether what nvcc gives counts too. update: whether the file is written anew."""

    baselines: Baselines
    soft: float = 0.0
    hard: float = 0.0
    compiled: bool = False
    update: bool = False
    measured: dict[str, dict[str, Figures]] = field(default_factory=dict)

    @staticmethod
    def asked(path: Path | None, soft: float, hard: float, compiled: bool, update: bool) -> Budgets | None:
        """Those that options ask for; None where they ask for none. Raises SimtbedError for options that do not fit."""
        if path is None:
            if soft or hard or compiled or update:
                raise SimtbedError(
                    "--soft, --hard, --compiled and --update-budget are about baselines: name their file with --budget"
                )
            return None
        check_limits(soft, hard)
        if update and os.environ.get("CI"):
            raise SimtbedError("--update-budget writes baselines; where CI is set they are only compared")
        if not update and not path.is_file():
            raise SimtbedError(f"{path}: No such file; --update-budget writes it")
        return Budgets(Baselines.read(path), soft, hard, compiled, update)

    def hold(self, target: Target | str, run: Run) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """What is beyond a limit, and what is within its hard limit alone, of the kernels of a target, or of a run that was
        kept, by its name. Kernels that prepare what all variants of a family need are held once, by the family's name."""
        if not isinstance(target, Shipped):
            return self._hold(str(target), run)
        found = [self._hold(target.name, own(run, target))]
        if target.family.name not in self.measured and preparing(run, target).launches:
            found.append(self._hold(target.family.name, preparing(run, target)))
        faults, remarks = zip(*found, strict=True)
        return list(chain(*faults)), list(chain(*remarks))

    def _hold(self, target: str, run: Run) -> tuple[list[Diagnostic], list[Diagnostic]]:
        faults: list[Diagnostic] = []
        remarks: list[Diagnostic] = []
        known = self.baselines.known.get(target, {})
        groups = run.by_kernel()
        for name, profile in run.profiles().items():
            launches = groups[name]
            blocks = ((int(np.prod(one.block)), one.shared_bytes) for one in launches)
            now = figures(profile, blocks, self._compiled(launches))
            self.measured.setdefault(target, {})[name] = now
            place = launches[0].kernel.span
            if self.update:
                continue
            if name not in known:
                message = f"{name} of {target} has no baseline in {self.baselines.path}: --update-budget writes it"
                faults.append(Diagnostic(KIND, message, place))
            elif verdict := judged(known[name], now, profile, self.soft, self.hard):
                what = "is over its budget" if verdict.over else f"is within its hard limit of {self.hard} %"
                found = Diagnostic(KIND, f"{name} of {target} {what}", verdict.place or place, tuple(verdict.lines))
                (faults if verdict.over else remarks).append(found)
        return faults, remarks

    def _compiled(self, launches: Iterable[Launch]) -> dict[str, Any] | None:
        """What nvcc gives the kernels of launches, each printed once."""
        if not self.compiled:
            return None
        requests = {(one.request.specialisation, one.block, one.device): one.request for one in launches}
        return compiled(requests.values())

    def left(self, ran: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Target and kernel of baselines that nothing used, of targets that ran."""
        return [
            (target, name)
            for target, kernels in self.baselines.known.items()
            if ran(target)
            for name in kernels
            if name not in self.measured.get(target, {})
        ]

    def unused(self, ran: Callable[[str], bool]) -> list[Diagnostic]:
        """A finding for each of them, at its line of the file."""
        return [self._unused(target, name) for target, name in self.left(ran)]

    def _unused(self, target: str, name: str) -> Diagnostic:
        path = str(self.baselines.path)
        lines = contents(self.baselines.path).decode().splitlines()
        heads = (n for n, line in enumerate(lines, 1) if line.startswith("[") and target in line and name in line)
        line = next(heads, 1)
        return Diagnostic(KIND, f"not used any more: {name} of {target}", Span(path, line, 1, line, 2))

    def text(self, ran: Callable[[str], bool]) -> str:
        """The file as it is to be now."""
        return self.baselines.merged(self.measured, self.left(ran)).removesuffix("\n")
