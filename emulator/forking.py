"""Fork of a process while its threads launch kernels: locks and imports of other threads do not continue in the child.

Before a fork, the forking thread waits for imports of other threads and takes the registered locks, so that none belongs to a thread
without existence in the child. Both processes release them.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import cached_property
from importlib import _bootstrap
from typing import Any

IMPORT_SECONDS = 10.0
"""Longest wait for imports of other threads."""

_MODULE_LOCKS: dict[str, Callable[[], Any]] = getattr(_bootstrap, "_module_locks", {})
"""Python's locks of modules that are being imported, by name: weak references."""
_locks: list[AbstractContextManager[Any]] = []
_in_child: list[Callable[[], None]] = []
_acquired = ExitStack()


def hold_at_fork(lock: AbstractContextManager[Any]) -> None:
    """Hold a lock during forks. A lock that is taken inside of another is registered after it."""
    _locks.append(lock)


def call_in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call the decorated function in the child of each fork, before the program continues."""
    _in_child.append(function)
    return function


def _before() -> None:
    deadline = time.monotonic() + IMPORT_SECONDS
    while True:
        for lock in _locks:
            _acquired.enter_context(lock)
        if not _imports_of_others() or time.monotonic() >= deadline:
            return
        _release()  # the import may need them
        time.sleep(0.001)


def _imports_of_others() -> list[str]:
    """Return the modules with locks of other threads."""
    locks = {name: lock() for name, lock in [*_MODULE_LOCKS.items()]}
    return [name for name, lock in locks.items() if getattr(lock, "owner", None) not in (None, threading.get_ident())]


def _abandon_imports_of_others() -> None:
    """Import again the modules that another thread began to import after the wait."""
    for name in _imports_of_others():
        del _MODULE_LOCKS[name]
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


def _release() -> None:
    _acquired.pop_all().close()


def _after_in_child() -> None:
    _release()
    _abandon_imports_of_others()
    _renew_locks_of_properties()
    for function in _in_child:
        function()


def _renew_locks_of_properties() -> None:
    """Replace the lock that each `cached_property` has before Python 3.12: another thread may have been in it."""
    for name, module in sys.modules.copy().items():
        if name.startswith(__package__):
            for cls in [member for member in vars(module).values() if isinstance(member, type)]:
                for member in vars(cls).values():
                    if isinstance(member, cached_property) and hasattr(member, "lock"):
                        member.lock = threading.RLock()


with suppress(AttributeError):  # Windows has no fork
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
