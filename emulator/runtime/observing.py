"""Observers of launches: whoever wants to see, count, check or repeat every launch that this process makes."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ..language.functions import Kernel
from ..machine.device import Device
from .engine import Request
from .registry import EngineName
from .result import Result


@dataclass(frozen=True)
class Call:
    """One launch about to be made. arguments: as the program gave them; those of the request are checked."""

    kernel: Kernel
    arguments: Mapping[str, Any]
    request: Request
    engine: EngineName


Proceed = Callable[[Call], Result]
"""Makes a launch; arrays that outlive it are not changed yet, so a call may be made again, or otherwise."""


class Observer(Protocol):
    """Stands between a program and its launches, in every thread.

    engine, device: that launches use whatever the program asks for; None for what it asks for.
    """

    @property
    def engine(self) -> EngineName | None: ...

    @property
    def device(self) -> Device | None: ...

    def observe(self, call: Call, proceed: Proceed) -> Result:
        """What the program gets of the launch: as a rule `proceed(call)`."""
        ...


OBSERVER = "SIMTBED_OBSERVER"
"""The environment variable that names a file with a pickled function, which makes the observer of a process and of those
that it starts."""
_OBSERVERS: tuple[Observer, ...] | None = None
"""Those of now, the outermost first; None before the first launch."""
_LOCK = threading.Lock()


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Inside, launches of all threads of this process, and of processes forked from it, go through the observer. Of
    several observers the first one is the outermost, and its wishes come first."""
    global _OBSERVERS
    before = observers()
    with _LOCK:
        _OBSERVERS = (*(_OBSERVERS or before), observer)
    try:
        yield
    finally:
        with _LOCK:
            _OBSERVERS = tuple(one for one in _OBSERVERS if one is not observer)


def observers() -> tuple[Observer, ...]:
    """Those of now, the outermost first."""
    global _OBSERVERS
    if _OBSERVERS is None:
        with _LOCK:
            if _OBSERVERS is None:
                _OBSERVERS = _of_environment()
    return _OBSERVERS


def _of_environment() -> tuple[Observer, ...]:
    """The observer that the environment names. It is trusted as what PYTHONPATH names is. Where its file is gone, so is
    whoever wanted to observe."""
    plan = os.environ.get(OBSERVER)
    if not plan:
        return ()
    try:
        return (pickle.loads(Path(plan).read_bytes())(),)
    except FileNotFoundError:
        return ()


def wishes(engine: EngineName, device: Device) -> tuple[EngineName, Device]:
    """The engine and the device of a launch that asks for these, as observers have it."""
    for observer in reversed(observers()):
        engine, device = observer.engine or engine, observer.device or device
    return engine, device


def observed(call: Call, proceed: Proceed) -> Result:
    """The result of a launch, through all observers."""
    for observer in reversed(observers()):
        proceed = partial(observer.observe, proceed=proceed)
    return proceed(call)
