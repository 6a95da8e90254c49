"""Budgets: what launches cost, held to the baselines of a project."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from ..errors import SimtbedError
from ..runtime.engine import Request
from ..runtime.result import Result
from .figures import Figures, changes, explained, figures
from .tally import Tally

FILE = Path(".simtbed", "budgets.toml")
"""Where the baselines are, from pytest's root folder."""


class OverBudget(AssertionError):
    """A launch that costs something else than its baseline says, or that has none."""


@dataclass
class Baselines:
    """The baselines of a project. known: the figures by test and name."""

    path: Path
    known: dict[str, dict[str, Figures]] = field(default_factory=dict)

    @staticmethod
    def of(root: Path) -> Baselines:
        """Those below a root folder. Raises SimtbedError, one line, where the file holds no baselines."""
        return Baselines.read(root / FILE)

    @staticmethod
    def read(path: Path) -> Baselines:
        """Those of a file; none where it is not there. Raises SimtbedError, one line."""
        try:
            known = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            known = {}
        except (OSError, ValueError) as error:
            raise SimtbedError(f"{path}: {error}") from None
        for test, budgets in known.items():
            for name, one in budgets.items() if isinstance(budgets, dict) else [("", None)]:
                if not (isinstance(one, dict) and {"device", "rules", "figures", "lines"} <= set(one)):
                    raise SimtbedError(f"{path}: {test} {name}: expected device, rules, figures and lines")
        return Baselines(path, known)

    def unused(self, used: Mapping[str, Mapping[str, Any]], ran: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Test and name of those that nothing used, of files that ran."""
        return [
            (test, name)
            for test, budgets in self.known.items()
            for name in budgets
            if name not in used.get(test, {}) and ran(test.partition("::")[0])
        ]

    def write(self, measured: Mapping[str, Mapping[str, Figures]], left: list[tuple[str, str]]) -> None:
        """Write what was measured over what is known, without those that are left over."""
        tests = sorted({*self.known, *measured})
        merged = {test: {**self.known.get(test, {}), **measured.get(test, {})} for test in tests}
        kept = {
            test: {name: one for name, one in sorted(budgets.items()) if (test, name) not in left}
            for test, budgets in merged.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(f".{os.getpid()}")
        beside.write_text(tomli_w.dumps({test: one for test, one in kept.items() if one}), encoding="utf-8")
        os.replace(beside, self.path)


@dataclass(frozen=True)
class Budget:
    """What one test expects under one name. The fields are as the fixture `budget` has them."""

    baselines: Baselines
    tally: Tally
    test: str
    name: str
    soft: float = 0.0
    hard: float = 0.0
    compiled: bool = False
    update: bool = False

    def expect(self, result: Result) -> None:
        """Raises OverBudget where the launch costs something else than its baseline says, with the lines of the kernel
        that changed. What ran on a GPU was not counted: the summary says so."""
        __tracebackhide__ = True  # pytest shows the test
        if result.counts is None:
            self._remark("not compared: nothing was counted")
            return
        profile = result.profile()
        threads = int(np.prod(result.request.block))
        now = figures(profile, threads, result.shared_bytes, _compiled(result.request) if self.compiled else None)
        before = self._before(now)
        if before is None:
            return
        found = [change for change in changes(before["figures"], now["figures"]) if change.percent > self.soft]
        if before["device"] == now["device"] and not found:
            return
        text = f"{self.name} of {self.test}:\n{explained(before, now, profile, found)}"
        if before["device"] == now["device"] and max(change.percent for change in found) <= self.hard:
            self._remark(f"within its hard limit of {self.hard} %\n{text}")
            return
        raise OverBudget(f"{text}\n  pytest --simtbed-update accepts it")

    def _before(self, now: Figures) -> Figures | None:
        """The baseline to compare with; None where this run writes it."""
        measured = self.tally.budgets.setdefault(self.test, {})
        if self.update:
            before: Figures = measured.setdefault(self.name, now)
            return before
        measured[self.name] = {}
        known = self.baselines.known.get(self.test, {}).get(self.name)
        if known is None:
            raise OverBudget(
                f"{self.name} of {self.test} has no baseline in {FILE.as_posix()}: pytest --simtbed-update writes it"
            )
        return known

    def _remark(self, text: str) -> None:
        self.tally.remarks.append(f"budget {self.name} of {self.test}: {text}")


def _compiled(request: Request) -> dict[str, Any]:
    """What nvcc gives the kernel. Raises UnavailableError where there is no nvcc."""
    nvcc, printer = (import_module(f"simtbed.engines.cuda.{name}") for name in ("nvcc", "printer"))
    source = printer.cuda_source(request.program, request.block)
    built = nvcc.build(source.with_lines(), source.kernel, "sm_{}{}".format(*request.device.compute_capability))
    report = built.resources
    return {
        "compiler": built.compiler,
        "registers": report.registers,
        "spill_stores": report.spill_stores,
        "spill_loads": report.spill_loads,
        "local_bytes": report.local_bytes,
    }
