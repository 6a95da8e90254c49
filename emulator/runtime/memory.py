"""How much memory a process may have: the machine's, and what control groups and limits leave of it."""

from __future__ import annotations

import os
from pathlib import Path

UNLIMITED = 1 << 62
GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def memory_of_machine() -> int:
    """Bytes; UNLIMITED where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNLIMITED


def memory_of_process() -> int:
    """Bytes that this process may take: of the machine's, no more than a container or a job is given, or `ulimit -v`."""
    return min(memory_of_machine(), _of_groups(), _of_limits())


def _of_groups() -> int:
    """The least limit of the control groups that the process is in, of either version, and of those around them."""
    try:
        lines = GROUPS.read_text().splitlines()
    except OSError:
        return UNLIMITED
    least = UNLIMITED
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = MOUNTED, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = MOUNTED / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = Path(path.lstrip("/"))  # in a container it may be a path of the host: then the root is its own
        for group in (own, *own.parents):
            least = min(least, _number(root / group / name))
    return least


def _number(path: Path) -> int:
    """What a file says, UNLIMITED for "max" and for no file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return UNLIMITED


def _of_limits() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
