"""Comparison with baselines in the commands with --budget: the file of baselines and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simtbed import Diagnostic, Run
from simtbed.escaping import Document, printable
from simtbed.kernels.files import Outputs

from ..targets.budgets import Budgets
from ..targets.findings import as_row, as_text
from ..targets.target import Shipped, Target
from .options import BudgetOptions
from .output import report_files, write_lines

_FILE = "--budget"


@dataclass
class BudgetCheck:
    """Comparison of runs with the baselines of a file; does nothing if there is no file.

    faults: kernels beyond a limit, missing or unused baselines. remarks: kernels beyond the soft limit only.
    """

    budgets: Budgets | None
    faults: list[Diagnostic] = field(default_factory=list)
    remarks: list[Diagnostic] = field(default_factory=list)

    @classmethod
    def from_options(cls, options: BudgetOptions, compiled: bool = False, update: bool = False) -> BudgetCheck:
        """Return the comparison that the options request. Raises SimtbedError for options that exclude each other."""
        return cls(Budgets.from_options(options.budget, options.soft, options.hard, compiled, update))

    def report_files(self, targets: Mapping[str, Path | None], inputs: Iterable[Path], device: str = "") -> Outputs:
        """Return the output files; the file of baselines is an output under --update-budget, else an input."""
        if self.budgets is None:
            return report_files(targets, inputs, [device])
        path = self.budgets.baselines.path
        if self.budgets.update:
            return report_files({**targets, _FILE: path}, inputs, [device])
        return report_files(targets, [*inputs, path], [device])

    def add(self, target: Target | str, run: Run) -> None:
        """Compare the kernels of a run with their baselines."""
        if self.budgets is not None:
            faults, remarks = self.budgets.compare(target, run)
            self.faults += faults
            self.remarks += remarks

    def finish(self, outputs: Outputs, is_complete: Callable[[str], bool]) -> None:
        """Write the baselines under --update-budget, else report unused ones.

        is_complete: whether all launches of a target, given by name, were compared.
        """
        if self.budgets is None:
            return
        if (file := outputs.get(_FILE)) is not None:
            write_lines(file, Document(self.budgets.text(is_complete)))
        else:
            self.faults += self.budgets.unused(is_complete)

    def text(self) -> list[str]:
        """Return the paragraphs of the report."""
        if self.budgets is None:
            return []
        count = sum(len(kernels) for kernels in self.budgets.measured.values())
        kernels = f"{count:,} kernel{'' if count == 1 else 's'}"
        path = printable(self.budgets.baselines.path)
        if self.budgets.update:
            return [f"wrote the baselines of {kernels} to {path}"]
        sections = {"over their budget": self.faults, "within hard limits": self.remarks}
        shown = [f"{title}:\n{as_text(findings)}" for title, findings in sections.items() if findings]
        return [f"compared {kernels} with {path}", *shown]

    def content(self) -> dict[str, Any]:
        """Return the JSON content of the report."""
        if self.budgets is None:
            return {}
        over, remarks = ([as_row(finding) for finding in found] for found in (self.faults, self.remarks))
        return {"budget": {"over": over, "remarks": remarks}}


def is_among(name: str, variants: Sequence[Shipped], complete: bool) -> bool:
    """Whether a baseline belongs to one of the variants, or, if they are complete families, to their families."""
    families = {shipped.family.name for shipped in variants}
    return name in families | {shipped.name for shipped in variants} or (
        complete and name.partition("/")[0] in families
    )
