"""The launches of a program, saved as JSON or HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..documents import json_of, text_of
from ..errors import Diagnostic, LaunchError, SimtbedError
from ..escaping import printable
from ..machine.device import Device
from . import run_file
from .events import Counts
from .launch import Launch
from .profile import CountedKernel, Profile, sum_profiles
from .samples import merge_samples


@dataclass(repr=False)
class Run:
    """The launches of a program, in the order of completion. target: the name of the program."""

    launches: list[Launch] = field(default_factory=list)
    target: str = ""

    def __repr__(self) -> str:
        of_target = f" of {self.target}" if self.target else ""
        names = list(self.by_kernel())
        kernels = ", ".join(names[:3] + ["..."] * (len(names) > 3)) or "none"
        return printable(f"<Run{of_target}: launches {len(self.launches):,}; kernels {kernels}>")

    def select(self, kernel: str = "*", launch: int | None = None) -> Run:
        """Return the launches of kernels whose name matches a pattern (`fnmatch`), or number `launch` of them, from 0.

        Raises SimtbedError if there are none; the message lists the kernels.
        """
        selected = [one for one in self.launches if fnmatchcase(one.kernel.name, kernel)]
        if not selected:
            names = ", ".join(dict.fromkeys(one.kernel.name for one in self.launches))
            raise SimtbedError(f"no launched kernel matches {kernel!r}; there were {names or 'no launches'}")
        if launch is None:
            return Run(selected, self.target)
        if not 0 <= launch < len(selected):
            raise SimtbedError(f"there is no launch {launch}; there are 0 to {len(selected) - 1}")
        return Run([selected[launch]], self.target)

    def by_kernel(self) -> dict[str, list[Launch]]:
        """Return the launches of each kernel by its name; by `file:line name` if two kernels have one name."""
        groups: dict[tuple[str, str], list[Launch]] = {}
        for launch in self.launches:
            groups.setdefault((launch.kernel.name, launch.kernel.span.place), []).append(launch)
        names = [name for name, _ in groups]
        return {
            name if names.count(name) == 1 else f"{place} {name}": launches
            for (name, place), launches in groups.items()
        }

    def profiles(self) -> dict[str, Profile]:
        """Return the profile of each kernel over all its launches, by the names of `by_kernel`, without uncounted kernels."""
        profiles = {}
        for name, launches in self.by_kernel().items():
            if counted := _counted(launches):
                profiles[name] = sum_profiles(counted)
        return profiles

    @property
    def profile(self) -> Profile:
        """The profile of all launches. Raises SimtbedError if nothing was counted."""
        profiles = _counted(self.launches)
        if not profiles:
            raise SimtbedError("nothing was counted" if self.launches else "nothing was launched")
        return sum_profiles(profiles)

    @property
    def faults(self) -> list[Diagnostic]:
        """The faults of all launches, one per place, with their counts."""
        return merge_findings(fault for one in self.launches for fault in one.faults)

    def save(self, path: str | Path) -> None:
        """Save the run as JSON, which `load` reads, without the values of arguments. A path that ends in .html gets an HTML page."""
        html = Path(path).suffix.lower() in (".html", ".htm")
        Path(path).write_text(self.html() if html else self.json(), encoding="utf-8")

    def json(self) -> str:
        """Return the run as JSON, which `load` reads."""
        return json.dumps(run_file.encode(self.launches, self.target))

    @staticmethod
    def of_json(text: str) -> Run:
        """Return the run in a JSON text. Raises ValueError or LaunchError if it is invalid."""
        return Run(*run_file.decode(json_of(text)))

    def html(self) -> str:
        """Return a self-contained HTML page of the run. Raises SimtbedError if nothing was counted."""
        from .html import launches, page  # late: they need a template engine

        profile = self.profile
        target = self.target or ", ".join(profile.kernels)
        rows = [launches.row(number, one) for number, one in enumerate(self.launches)]
        groups = self.by_kernel()
        occupancies = {name: launches.occupancies(group) for name, group in groups.items()}
        findings = {
            name: merge_findings(fault for one in group for fault in one.faults) for name, group in groups.items()
        }
        return page.page(target, self.profiles(), rows, occupancies, findings)

    def _repr_html_(self) -> str:
        from .html.page import frame

        return frame(self.html())

    @staticmethod
    def load(path: str | Path) -> Run:
        """Read a run from a file. Raises SimtbedError, one line, if it is invalid."""
        try:
            return Run.of_json(text_of(path))
        except (ValueError, LaunchError) as error:
            raise SimtbedError(f"{printable(path)}: expected a run that simtbed saved: {error}") from None


def _counted(launches: Iterable[Launch]) -> list[Profile]:
    """Return a profile for each kernel and device. Counts are added before they are named."""
    groups: dict[tuple[CountedKernel, Device], list[Launch]] = {}
    for launch in launches:
        if launch.counts is not None:
            groups.setdefault((launch.kernel, launch.device), []).append(launch)
    profiles = []
    for (kernel, device), group in groups.items():
        counts: Counts = np.sum([one.counts for one in group if one.counts is not None], axis=0)
        samples = merge_samples(samples for one in group if (samples := one.samples))
        profiles.append(kernel.profile(counts, device, len(group), samples))
    return profiles


def merge_findings(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge findings of one kind at one place, and add their counts."""
    merged: dict[Any, Diagnostic] = {}
    for finding in findings:
        place = (finding.kind, finding.span, finding.related)
        before = merged.get(place)
        merged[place] = replace(before, count=before.count + finding.count) if before else finding
    return list(merged.values())
