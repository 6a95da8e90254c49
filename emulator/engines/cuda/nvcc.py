"""Compilation of CUDA C++ to a cubin: finding and calling nvcc, its resource report, and the cache of cubins."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ... import disk_cache
from ...errors import LaunchError, UnavailableError
from ...runtime.engine import Resources

OPTIONS = (
    "-std=c++17",
    "-fmad=false",  # x * y + z rounds twice, as it does everywhere else; fma is written where it is meant
    "-prec-div=true",
    "-prec-sqrt=true",
    "-ftz=false",
    "-lineinfo",
    "--resource-usage",
)
MISSING = 'the CUDA compiler nvcc is not found: put it on PATH, set CUDA_HOME, or pip install "simtbed[nvcc]"'


@dataclass(frozen=True)
class Built:
    """A compiled kernel and the compiler's report on it."""

    cubin: bytes
    resources: Resources
    compiler: str


def build(text: str, kernel: str, arch: str) -> Built:
    """Compile `text`, whose kernel has the C++ name `kernel`, for an architecture such as "sm_90".

    Raises LaunchError where there is no nvcc, or with nvcc's own message where it refuses the text.
    """
    nvcc = find_nvcc()
    compiler = version(nvcc)
    key = hashlib.sha256("\0".join((text, arch, *OPTIONS, compiler)).encode()).hexdigest()

    def built(kept: bytes) -> Built:
        report, _, cubin = kept.partition(b"\0")
        return Built(cubin, resources(report.decode(), kernel, cubin), compiler)

    found = disk_cache.load(f"{key}.cubin", built)
    if found is None:
        cubin, report = _compile(nvcc, text, arch)
        found = built(whole := report.encode() + b"\0" + cubin)
        disk_cache.save(f"{key}.cubin", whole)
    return found


# ------------------------------------------------------------------ nvcc
def find_nvcc() -> Path:
    """The compiler, or UnavailableError with what to do."""
    found = find_tool("nvcc")
    if found is None:
        raise UnavailableError(MISSING)
    return found


def find_tool(name: str) -> Path | None:
    """A tool of the CUDA toolkit: on PATH, below CUDA_HOME or CUDA_PATH, or from NVIDIA's packages on PyPI."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)]
    folders += (str(p) for root in sys.path for p in sorted(Path(root).glob("nvidia/cu*/bin")))
    for folder in folders:
        if folder and (found := shutil.which(name, path=folder)):
            return Path(found)
    return None


@cache
def version(nvcc: Path) -> str:
    """The line of `nvcc --version` that names the build. It is asked again when nvcc's file has another size or time."""
    name = identity(nvcc)
    found = disk_cache.load(f"{name}.nvcc", bytes.decode) if name else None
    if found is None:
        found = _ask_version(nvcc)
        if name:
            disk_cache.save(f"{name}.nvcc", found.encode())
    return found


def identity(tool: Path) -> str:
    """A digest of where a tool's file is, of its size and its time; empty where there is no such file."""
    try:
        status = os.stat(tool)
    except OSError:
        return ""
    parts = (os.path.realpath(tool), str(status.st_ino), str(status.st_size), str(status.st_mtime_ns))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _ask_version(nvcc: Path) -> str:
    done = run([str(nvcc), "--version"], None)
    if done.returncode:
        raise LaunchError(f"{nvcc} --version failed\n{said(done)}")
    return next((line.strip() for line in reversed(done.stdout.splitlines()) if "elease" in line), done.stdout.strip())


@cache
def architectures(nvcc: Path) -> tuple[str, ...]:
    """What a compiler makes code for, such as "sm_90", the oldest first."""
    done = run([str(nvcc), "--list-gpu-code"], None)
    found = [line.strip() for line in done.stdout.splitlines() if re.fullmatch(r"sm_\d+", line.strip())]
    if done.returncode or not found:
        raise LaunchError(f"{nvcc} --list-gpu-code failed\n{said(done)}")
    return tuple(sorted(found, key=lambda name: int(name[3:])))


def _compile(nvcc: Path, text: str, arch: str) -> tuple[bytes, str]:
    """The cubin and nvcc's report. Raises UnavailableError where temporary files cannot be written."""
    try:
        return _compile_beside(nvcc, text, arch)
    except OSError as error:
        raise UnavailableError(
            f"temporary files cannot be written (TMPDIR names their folder): {error.strerror}"
        ) from None


def _compile_beside(nvcc: Path, text: str, arch: str) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        source, target = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        source.write_text(text, encoding="utf-8")
        done = run([str(nvcc), "-cubin", f"-arch={arch}", *OPTIONS, "-o", target.name, source.name], folder)
        if done.returncode:
            raise LaunchError(f"nvcc does not compile the kernel for {arch}\n{said(done)}")
        return target.read_bytes(), done.stdout + done.stderr


def run(command: list[str], folder: str | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be run: {error.strerror}") from None


def said(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr + done.stdout).strip() or f"exit code {done.returncode}"


# ------------------------------------------------------------------ resources
def resources(report: str, kernel: str, cubin: bytes) -> Resources:
    """Registers, memory and spills of one kernel, from the output of `nvcc --resource-usage`.

    The size of constant tables is read from the cubin, as newer compilers do not report it.
    """
    _, _, mine = report.partition(f"Compiling entry function '{kernel}'")
    mine = mine.partition("Compiling entry function")[0]

    def number(pattern: str) -> int:
        found = re.search(pattern, mine)
        return int(found[1]) if found else 0

    if not re.search(r"Used \d+ registers", mine):
        raise LaunchError(f"nvcc reported nothing about {kernel}\n{report.strip()}")
    return Resources(
        registers=number(r"Used (\d+) registers"),
        shared_bytes=number(r"(\d+) bytes smem"),
        local_bytes=number(r"(\d+) bytes stack frame"),
        constant_bytes=sections(cubin).get(".nv.constant3", 0),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
    )


def sections(elf: bytes) -> dict[str, int]:
    """Names and sizes of the sections of a 64-bit little-endian ELF file, which a cubin is."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, entries, naming = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<II8x8xQQ", elf, table + i * entry_size) for i in range(entries)]
    strings = headers[naming][2]
    return {elf[strings + at : elf.index(0, strings + at)].decode(): size for at, _, _, size in headers}
