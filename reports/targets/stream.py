"""Observers of the processes of a program: their names and options in the observer folder, and their launches in its file."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from simtbed import Diagnostic, Launch
from simtbed.runtime.cubin_launch import CubinLaunch
from simtbed.runtime.observer_folder import LaunchWriter, ObserverFolder
from simtbed.runtime.observing import Observer, cubin_receivers

from .uncaught import show_findings_once

MakeObserver = Callable[[Callable[[Launch], object]], Observer]
"""Constructor of an observer from the callback for its launches. In another process: a class of OBSERVERS, or a partial of one."""
OBSERVERS = {
    "Recorder": "simtbed.runtime.recording",
    "Debugger": "simtbed.reports.targets.debugger",
    "Verifier": "simtbed.reports.targets.verifier",
    "Planner": "simtbed.reports.whatif.planner",
}
"""The modules of observers that another process may create."""


def describe(make: MakeObserver, reported: bool) -> Mapping[str, Any]:
    """Return the options of `observer_of` for a constructor. reported: whether a report shows the findings of launches."""
    call = partial(make)  # of a partial: that one's function and arguments
    return {"kind": call.func.__name__, "fields": call.keywords, "reported": reported}


def observer_of(folder: str, kind: str, fields: Mapping[str, Any], reported: bool) -> Observer:
    """Return the observer of this process. It appends launches to the file of an observer folder."""
    if reported:
        show_findings_once()
    make: MakeObserver = partial(getattr(import_module(OBSERVERS[kind]), kind), **fields)
    writer = LaunchWriter(folder)
    if fields.get("compiled"):
        cubin_receivers.append(writer.add)
    return make(writer.add)


def records(folder: ObserverFolder) -> tuple[list[Launch], list[Diagnostic], list[CubinLaunch]]:
    """Return the launches in a folder, the findings of host code, and the launches of cubins.

    Raises SimtbedError, one line, for other content.
    """
    values = list(folder.values(Launch | Diagnostic | CubinLaunch))
    launches = [one for one in values if isinstance(one, Launch)]
    findings = [one for one in values if isinstance(one, Diagnostic)]
    return launches, findings, [one for one in values if isinstance(one, CubinLaunch)]
