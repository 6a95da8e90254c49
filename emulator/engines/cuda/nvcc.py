"""Compilation of CUDA C++ to a cubin: finding and calling nvcc, its resource report, and the cache of cubins."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ... import disk_cache
from ...errors import LaunchError, UnavailableError
from ...runtime.engine import Resources

OPTIONS = (
    "-std=c++17",
    "-fmad=false",  # x * y + z rounds twice, as on all engines; fma is explicit
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


def build(
    text: str,
    kernel: str,
    arch: str,
    options: Sequence[str] | None = None,
    suffix: str = ".cu",
    compiler: Path | None = None,
) -> Built:
    """Compile `text`, whose kernel has the symbol `kernel`, for an architecture such as "sm_90".

    options: of nvcc, OPTIONS without any. suffix: of a file in the text's language. compiler: the nvcc to use.
    Raises LaunchError without nvcc, or with nvcc's message for invalid text.
    """
    nvcc = compiler or find_nvcc()
    release = version(nvcc)
    arch += "a" * (arch == "sm_90" and "wgmma." in text)  # an instruction of this architecture alone
    options = OPTIONS if options is None else options
    key = hashlib.sha256("\0".join((text, arch, *options, release)).encode()).hexdigest()

    def built(data: bytes) -> Built:
        report, _, cubin = data.partition(b"\0")
        return Built(cubin, resources(report.decode(), entry_of(cubin, kernel), cubin), release)

    result = disk_cache.load(f"{key}.cubin", built)
    if result is None:
        cubin, report = _compile(nvcc, text, arch, options, suffix)
        result = built(whole := report.encode() + b"\0" + cubin)
        disk_cache.save(f"{key}.cubin", whole)
    return result


# ------------------------------------------------------------------ nvcc
def find_nvcc() -> Path:
    """Return the compiler's path. Raises UnavailableError with advice."""
    result = find_tool("nvcc")
    if result is None:
        raise UnavailableError(MISSING)
    return result


def of_toolkit(folder: Path) -> Path:
    """Return the nvcc in the folder of a toolkit; another one if it has none. Raises UnavailableError with advice."""
    own = shutil.which("nvcc", path=folder / "bin")
    return find_nvcc() if own is None else Path(own)


def find_tool(name: str) -> Path | None:
    """A tool of the CUDA toolkit: on PATH, below CUDA_HOME or CUDA_PATH, or from NVIDIA's packages on PyPI."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)]
    folders += (str(p) for root in sys.path for p in sorted(Path(root).glob("nvidia/cu*/bin")))
    for folder in folders:
        if folder and (result := shutil.which(name, path=folder)):
            return Path(result)
    return None


@cache
def version(nvcc: Path) -> str:
    """Return the line of `nvcc --version` that names the build, cached by the size and time of nvcc's file."""
    name = identity(nvcc)
    result = disk_cache.load(f"{name}.nvcc", bytes.decode) if name else None
    if result is None:
        result = _query_version(nvcc)
        if name:
            disk_cache.save(f"{name}.nvcc", result.encode())
    return result


def identity(tool: Path) -> str:
    """Return a digest of the path, size and time of a tool's file; empty if there is none."""
    try:
        status = os.stat(tool)
    except OSError:
        return ""
    file_identity = (os.path.realpath(tool), str(status.st_ino), str(status.st_size), str(status.st_mtime_ns))
    return hashlib.sha256("\0".join(file_identity).encode(errors="surrogateescape")).hexdigest()


def _query_version(nvcc: Path) -> str:
    process = run([str(nvcc), "--version"], None)
    if process.returncode:
        raise LaunchError(f"{nvcc} --version failed\n{output_of(process)}")
    return next(
        (line.strip() for line in reversed(process.stdout.splitlines()) if "elease" in line), process.stdout.strip()
    )


@cache
def architectures(nvcc: Path) -> tuple[str, ...]:
    """Return the architectures of a compiler, such as "sm_90", the oldest first."""
    process = run([str(nvcc), "--list-gpu-code"], None)
    result = [line.strip() for line in process.stdout.splitlines() if re.fullmatch(r"sm_\d+", line.strip())]
    if process.returncode or not result:
        raise LaunchError(f"{nvcc} --list-gpu-code failed\n{output_of(process)}")
    return tuple(sorted(result, key=lambda name: int(name[3:])))


def _compile(nvcc: Path, text: str, arch: str, options: Sequence[str], suffix: str) -> tuple[bytes, str]:
    """The cubin and nvcc's report. Raises UnavailableError where temporary files cannot be written."""
    try:
        return _compile_in_folder(nvcc, text, arch, options, suffix)
    except OSError as error:
        raise UnavailableError(
            f"temporary files cannot be written (TMPDIR names their folder): {error.strerror}"
        ) from None


def _compile_in_folder(nvcc: Path, text: str, arch: str, options: Sequence[str], suffix: str) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        source, target = Path(folder, f"kernel{suffix}"), Path(folder, "kernel.cubin")
        source.write_text(text, encoding="utf-8")
        process = run([str(nvcc), "-cubin", f"-arch={arch}", *options, "-o", target.name, source.name], folder)
        if process.returncode:
            raise LaunchError(f"nvcc does not compile the kernel for {arch}\n{output_of(process)}")
        return target.read_bytes(), process.stdout + process.stderr


MAX_SECONDS = 1200
"""Time of a tool. nvdisasm does not end for some damaged files."""


def run(command: list[str], folder: str | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=MAX_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise LaunchError(f"{command[0]} has not ended after {MAX_SECONDS:,} seconds") from None
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be run: {error.strerror}") from None


def output_of(process: subprocess.CompletedProcess[str]) -> str:
    return (process.stderr + process.stdout).strip() or f"exit code {process.returncode}"


# ------------------------------------------------------------------ resources
def resources(report: str, kernel: str, cubin: bytes) -> Resources:
    """Registers, memory and spills of one kernel, from the output of `nvcc --resource-usage`.

    The size of constant tables is read from the cubin, as newer compilers do not report it.
    """
    _, _, mine = report.partition(f"Compiling entry function '{kernel}'")
    mine = mine.partition("Compiling entry function")[0]

    def number(pattern: str) -> int:
        result = re.search(pattern, mine)
        return int(result[1]) if result else 0

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


_HEADER_TYPES = {"DF16_": "6__half", "DF16b": "13__nv_bfloat16", "5half2": "7__half2", "9bfloat162": "14__nv_bfloat162"}
"""Types in symbols that the parser reads as others than those of CUDA's headers, with the names there."""


def entry_of(cubin: bytes, kernel: str) -> str:
    """Return the symbol in a cubin of a kernel whose symbol may have other 16-bit floats; `kernel` if there is no such symbol."""
    entries = [name.removeprefix(".text.") for name in sections(cubin) if name.startswith(".text.")]
    equal = [entry for entry in entries if _without_substitutions(entry) == _without_substitutions(kernel)]
    return equal[0] if kernel not in entries and len(equal) == 1 else kernel


def _without_substitutions(symbol: str) -> str:
    """Return a mangled name with the types of CUDA's headers, without the repetitions of a type."""
    for read, name in _HEADER_TYPES.items():
        symbol = symbol.replace(read, name)
    symbol = re.sub(r"S[0-9A-Z]*_", "", symbol)
    for name in _HEADER_TYPES.values():
        first, found, rest = symbol.partition(name)
        symbol = first + found + rest.replace(name, "")
    return symbol


def sections(elf: bytes) -> dict[str, int]:
    """Return names and sizes of the sections of a 64-bit little-endian ELF file, such as a cubin."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, entries, naming = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<II8x8xQQ", elf, table + i * entry_size) for i in range(entries)]
    strings = headers[naming][2]
    return {elf[strings + at : elf.index(0, strings + at)].decode(): size for at, _, _, size in headers}
