"""File of pickled launches, written by the processes of a program and read by the reporting process."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simtbed import Launch
from simtbed.profiler.profile import CountedKernel
from simtbed.runtime.observing import Observer
from simtbed.runtime.specialisation import Specialisation

from .uncaught import show_findings_once

MakeObserver = Callable[[Callable[[Launch], object]], Observer]
"""Constructor of an observer from the callback for its launches. It is pickled: a class, or a partial of one."""

SHARED = (CountedKernel, Specialisation)


class Writer:
    """Appends launches to a file shared by several processes.

    Each launch is one write, so a launch is complete in the file even if its process is killed. Objects shared by
    launches are written once per process.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._names: dict[Any, str] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()

    def add(self, launch: Launch) -> None:
        """Append a launch by one write."""
        with self._lock:
            frames = b""
            shared = (launch.kernel, *([launch.request.specialisation] if launch.request else ()))
            for member in shared:
                if member not in self._names:
                    self._names[member] = f"{os.getpid()}.{len(self._names)}"
                    frames += _frame(pickle.dumps((self._names[member], member)))
            os.write(self._file, frames + _frame(self._pickled(launch)))

    def _pickled(self, launch: Launch) -> bytes:
        names = self._names

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj: Any) -> str | None:
                return names.get(obj) if isinstance(obj, SHARED) else None

        into = io.BytesIO()
        Pickler(into).dump(launch)
        return into.getvalue()


def observer_into(path: Path, make: MakeObserver, reported: bool) -> Observer:
    """Return an observer that appends launches to a file. reported: whether a report shows their findings."""
    if reported:
        show_findings_once()
    return make(Writer(path).add)


def _frame(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def read(path: Path) -> Iterator[Launch]:
    """Yield the launches of a file, except an incomplete last one."""
    shared_objects: dict[str, Any] = {}

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return shared_objects[pid]

    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head, "little")
            if size > end - file.tell():
                return
            content = file.read(size)
            loaded = Unpickler(io.BytesIO(content)).load()
            if isinstance(loaded, Launch):
                yield loaded
            else:
                name, shared = loaded
                shared_objects[name] = shared
