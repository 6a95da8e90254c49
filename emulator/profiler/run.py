"""The launches of a program that ran: what each one was given, counted, found and took; kept as a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Diagnostic, LaunchError, SimtbedError
from ..machine.device import Device
from . import run_file
from .events import Counts
from .launch import Launch
from .profile import CountedKernel, Profile, sum_profiles
from .samples import merge_samples


@dataclass
class Run:
    """The launches of a program, in the order in which they ended. target: what ran, as it was named."""

    launches: list[Launch] = field(default_factory=list)
    target: str = ""

    def select(self, kernel: str = "*", launch: int | None = None) -> Run:
        """Launches of kernels whose name a pattern (`fnmatch`) fits; or the one of them with a number, from 0.

        Raises SimtbedError where there are none, with what there is.
        """
        found = [one for one in self.launches if fnmatchcase(one.kernel.name, kernel)]
        if not found:
            names = ", ".join(dict.fromkeys(one.kernel.name for one in self.launches))
            raise SimtbedError(f"no kernel was launched that {kernel!r} fits; there were {names or 'no launches'}")
        if launch is None:
            return Run(found, self.target)
        if not 0 <= launch < len(found):
            raise SimtbedError(f"there is no launch {launch}; there are 0 to {len(found) - 1}")
        return Run([found[launch]], self.target)

    def by_kernel(self) -> dict[str, list[Launch]]:
        """The launches of each kernel, specialised or not, by its name; `file:line name` where two have one name."""
        groups: dict[tuple[str, str], list[Launch]] = {}
        for one in self.launches:
            groups.setdefault((one.kernel.name, one.kernel.span.place), []).append(one)
        names = [name for name, _ in groups]
        return {
            name if names.count(name) == 1 else f"{place} {name}": launches
            for (name, place), launches in groups.items()
        }

    def profiles(self) -> dict[str, Profile]:
        """What each kernel cost in all its launches, by the names of `by_kernel`; kernels that were not counted are left out."""
        found = {}
        for name, launches in self.by_kernel().items():
            if counted := _counted(launches):
                found[name] = sum_profiles(counted)
        return found

    @property
    def profile(self) -> Profile:
        """What all launches cost together. Raises SimtbedError where nothing was counted."""
        found = _counted(self.launches)
        if not found:
            raise SimtbedError("nothing was counted" if self.launches else "nothing was launched")
        return sum_profiles(found)

    @property
    def faults(self) -> list[Diagnostic]:
        """What was found wrong in all launches, one a place, with how often."""
        return merge_findings(fault for one in self.launches for fault in one.faults)

    def save(self, path: str | Path) -> None:
        """Keep the run as a JSON file, which `load` reads; arguments' values are not kept. A path that ends in .html
        becomes a page for people instead."""
        html = Path(path).suffix.lower() in (".html", ".htm")
        Path(path).write_text(self.html() if html else self.json(), encoding="utf-8")

    def json(self) -> str:
        """The run as `load` reads it."""
        return json.dumps(run_file.encode(self.launches, self.target))

    @staticmethod
    def of_json(text: str) -> Run:
        """The run that a text of `json` holds. Raises ValueError or LaunchError for what is none."""
        return Run(*run_file.decode(json.loads(text)))

    def html(self) -> str:
        """One page with everything, which needs no network. Raises SimtbedError where nothing was counted."""
        from .html import launches, page  # late: they need a template engine

        profile = self.profile
        target = self.target or ", ".join(profile.kernels)
        rows = [launches.row(number, one) for number, one in enumerate(self.launches)]
        groups = self.by_kernel()
        occupancies = {name: launches.occupancies(group) for name, group in groups.items()}
        found = {name: merge_findings(fault for one in group for fault in one.faults) for name, group in groups.items()}
        return page.page(target, self.profiles(), rows, occupancies, found)

    def _repr_html_(self) -> str:
        from .html.page import framed

        return framed(self.html())

    @staticmethod
    def load(path: str | Path) -> Run:
        """The run that a file holds. Raises SimtbedError, one line, where it holds none."""
        try:
            return Run.of_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise SimtbedError(f"{path}: {error.strerror or error}") from None
        except (ValueError, LaunchError) as error:
            raise SimtbedError(f"{path}: expected a run that simtbed saved: {error}") from None
        except RecursionError:
            raise SimtbedError(f"{path}: expected a run that simtbed saved: lists nest too deep") from None


def _counted(launches: Iterable[Launch]) -> list[Profile]:
    """A profile for each kernel and device, of all its launches: counts are added before they are named."""
    groups: dict[tuple[CountedKernel, Device], list[Launch]] = {}
    for one in launches:
        if one.counts is not None:
            groups.setdefault((one.kernel, one.device), []).append(one)
    found = []
    for (kernel, device), group in groups.items():
        counts: Counts = np.sum([one.counts for one in group if one.counts is not None], axis=0)
        samples = merge_samples(samples for one in group if (samples := one.samples))
        found.append(kernel.profile(counts, device, len(group), samples))
    return found


def merge_findings(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings of several launches: those of one kind at one place are one, counted together."""
    known: dict[Any, Diagnostic] = {}
    for one in found:
        place = (one.kind, one.span, one.related)
        before = known.get(place)
        known[place] = replace(before, count=before.count + one.count) if before else one
    return list(known.values())
