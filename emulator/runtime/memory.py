"""Memory available to a process: of the machine, and under control groups and limits."""

import os
from pathlib import Path

UNLIMITED = 1 << 62
GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def memory_of_machine() -> int:
    """Return the machine's memory in bytes; UNLIMITED if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNLIMITED


def memory_of_process() -> int:
    """Return the memory of this process in bytes: the minimum of the machine's, of the container or job, and of `ulimit -v`."""
    return min(memory_of_machine(), _of_groups(), address_space())


def _of_groups() -> int:
    """Return the minimum limit of the process's control groups, of either version, and of their parents."""
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
        own = Path(path.lstrip("/"))  # in a container it may be a path of the host: then the root group applies
        for group in (own, *own.parents):
            least = min(least, _number(root / group / name))
    return least


def _number(path: Path) -> int:
    """Return the number in a file; UNLIMITED for "max" and for a missing file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return UNLIMITED


def address_space() -> int:
    """Return the limit of the process's address space in bytes (`ulimit -v`); UNLIMITED if there is none."""
    try:
        import resource
    except ImportError:  # not on Windows
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
