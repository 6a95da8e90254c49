"""Observers of launches: interception of every launch of a process for recording, counting, checking or repetition."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from ..errors import LaunchError
from ..forking import hold_at_fork
from ..machine.device import Device
from .cubin_launch import CubinLaunch
from .engine import Request
from .registry import EngineName
from .result import LaunchDetails
from .specialisation import AnyKernel
from .streams import Stream


@dataclass(frozen=True)
class PendingLaunch:
    """One pending launch. arguments: passed by the program; those of the request are validated. stream: None for no stream."""

    kernel: AnyKernel
    arguments: Mapping[str, Any]
    request: Request
    engine: EngineName
    stream: Stream | None = None


NextLaunch = Callable[[PendingLaunch], LaunchDetails]
"""Runs a launch. Device arrays are unchanged until the program gets the result, so a call may be repeated or modified."""


class Observer(Protocol):
    """Intercepts the launches of all threads.

    engine, device: override the program's; None for no override.
    """

    @property
    def engine(self) -> EngineName | None: ...

    @property
    def device(self) -> Device | None: ...

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        """Return the program's result of a launch: usually `proceed(call)`."""
        ...


OBSERVER = "SIMTBED_OBSERVER"
"""Environment variable with the folder of the observer of the process and its children (`observer_folder`)."""
LAUNCHES = "launches"
"""The name of the observer that takes launches and findings of host code."""
_CREATORS = {LAUNCHES: "simtbed.reports.targets.stream", "tests": "simtbed.testing.watching"}
"""The module with the function `observer_of` for each name of an observer in such a folder."""
current: tuple[Observer, ...] | None = None
"""Current observers, outermost first; None before the first launch."""
cubin_receivers: list[Callable[[CubinLaunch], object]] = []
"""Functions that get each launch of a kernel of a cubin (`CubinLaunch`) before its execution."""
_LOCK = threading.Lock()
hold_at_fork(_LOCK)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Route launches of all threads, and of forked processes, through the observer. The first of several observers is
    the outermost; its overrides win."""
    global current
    before = observers()
    with _LOCK:
        current = (*(current or before), observer)
    try:
        yield
    finally:
        with _LOCK:
            current = tuple(active for active in current if active is not observer)


def observers() -> tuple[Observer, ...]:
    """Return the current observers, outermost first."""
    global current
    if current is None:
        with _LOCK:
            if current is None:
                current = _of_environment()
    return current


def _of_environment() -> tuple[Observer, ...]:
    """Return the observer of the folder in the environment; none if the folder is removed.

    Raises LaunchError, one line, for another folder or other content.
    """
    folder = os.environ.get(OBSERVER)
    if not folder:
        return ()
    from .observer_folder import read_observer  # late: few processes are observed

    try:
        name, options = read_observer(folder)
        return (import_module(_CREATORS[name]).observer_of(folder, **options),)
    except FileNotFoundError:
        return ()
    except OSError as error:
        reason = error.strerror or str(error)
    except (LookupError, TypeError, ValueError) as error:
        reason = str(error)
    raise LaunchError(f"{OBSERVER}: {folder}: {reason}: unset it, or run the program under simtbed profile")


def is_checked() -> bool:
    """Return whether an observer looks for findings."""
    return any(getattr(observer, "check", None) for observer in observers())


def overrides(engine: EngineName, device: Device) -> tuple[EngineName, Device]:
    """Return the engine and the device of a launch after the observers' overrides."""
    for observer in reversed(observers()):
        engine, device = observer.engine or engine, observer.device or device
    return engine, device


def run_through_observers(call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
    """Return the result of a launch, run through all observers."""
    for observer in reversed(observers()):
        proceed = partial(observer.observe, proceed=proceed)
    return proceed(call)
