"""Launches on their way from the processes of a program to the one that reports on them: frames in a file."""

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
"""Makes an observer that hands on each launch. It is pickled: a class, or a partial of one."""

SHARED = (CountedKernel, Specialisation)


class Writer:
    """Appends launches to a file, each by one write, so that forked and other processes may share the file, and what a
    process launched is there however it ends. What launches share is written once by each process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._known: dict[Any, str] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()

    def add(self, launch: Launch) -> None:
        """Write a launch, whole or not at all."""
        with self._lock:
            frames = b""
            shared = (launch.kernel, *([launch.request.specialisation] if launch.request else ()))
            for one in shared:
                if one not in self._known:
                    self._known[one] = f"{os.getpid()}.{len(self._known)}"
                    frames += _frame(pickle.dumps((self._known[one], one)))
            os.write(self._file, frames + _frame(self._pickled(launch)))

    def _pickled(self, launch: Launch) -> bytes:
        known = self._known

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj: Any) -> str | None:
                return known.get(obj) if isinstance(obj, SHARED) else None

        into = io.BytesIO()
        Pickler(into).dump(launch)
        return into.getvalue()


def observer_into(path: Path, make: MakeObserver, reported: bool) -> Observer:
    """The observer of a process whose launches go to a file. reported: whether their findings stand in a report."""
    if reported:
        show_findings_once()
    return make(Writer(path).add)


def _frame(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def read(path: Path) -> Iterator[Launch]:
    """The launches of a file; a last one that was not written whole is left out."""
    known: dict[str, Any] = {}

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return known[pid]

    with path.open("rb") as file:
        whole = os.fstat(file.fileno()).st_size
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head, "little")
            if size > whole - file.tell():
                return
            content = file.read(size)
            found = Unpickler(io.BytesIO(content)).load()
            if isinstance(found, Launch):
                yield found
            else:
                name, shared = found
                known[name] = shared
