"""What commands with --budget share: the file among their outputs, and how what was found is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simtbed import Diagnostic, Run
from simtbed.kernels.files import Outputs

from ..targets.budgets import Budgets
from ..targets.findings import as_row, as_text
from ..targets.target import Shipped, Target
from .output import reports, write_lines

_FILE = "--budget"


@dataclass
class Held:
    """Runs held to the baselines of a file, where one was named. faults: beyond a limit, missing or unused. remarks:
    within a hard limit alone."""

    budgets: Budgets | None
    faults: list[Diagnostic] = field(default_factory=list)
    remarks: list[Diagnostic] = field(default_factory=list)

    def reports(self, targets: Mapping[str, Path | None], inputs: Iterable[Path], device: str = "") -> Outputs:
        """`reports`, none of which is the file of baselines; that is one of them where it is to be written."""
        if self.budgets is None:
            return reports(targets, inputs, device)
        path = self.budgets.baselines.path
        if self.budgets.update:
            return reports({**targets, _FILE: path}, inputs, device)
        return reports(targets, [*inputs, path], device)

    def add(self, target: Target | str, run: Run) -> None:
        """Hold the kernels of a run of a target."""
        if self.budgets is not None:
            faults, remarks = self.budgets.hold(target, run)
            self.faults += faults
            self.remarks += remarks

    def end(self, outputs: Outputs, ran: Callable[[str], bool]) -> None:
        """All ran: write the file where that is asked for; else look what in it nothing used. ran: whether all launches
        of the target with a name were held."""
        if self.budgets is None:
            return
        if (file := outputs.get(_FILE)) is not None:
            write_lines(file, self.budgets.text(ran))
        else:
            self.faults += self.budgets.unused(ran)

    def text(self) -> list[str]:
        """The paragraphs of a report: the kernels that were held to a baseline, and what is not as it was."""
        if self.budgets is None:
            return []
        many = sum(len(kernels) for kernels in self.budgets.measured.values())
        word = f"{many:,} kernel{'' if many == 1 else 's'}"
        path = self.budgets.baselines.path
        if self.budgets.update:
            return [f"the baselines of {word} are written to {path}"]
        found = {"over their budget": self.faults, "within hard limits": self.remarks}
        shown = [f"{title}:\n{as_text(several)}" for title, several in found.items() if several]
        return [f"{word} held to {path}", *shown]

    def content(self) -> dict[str, Any]:
        """The same for programs."""
        if self.budgets is None:
            return {}
        return {
            "budget": {"over": [as_row(one) for one in self.faults], "remarks": [as_row(one) for one in self.remarks]}
        }


def is_whole(kernel: str, launch: int | None) -> bool:
    """Whether a command leaves no launch out."""
    return kernel == "*" and launch is None


def is_among(name: str, chosen: Sequence[Shipped], whole: bool) -> bool:
    """Whether a target of a file of baselines was to run: one of those chosen; or of their families, which are whole."""
    families = {one.family.name for one in chosen}
    return name in families | {one.name for one in chosen} or (whole and name.partition("/")[0] in families)
