"""Search for nvcc, its reports, and the cache: a damaged or missing entry costs only a compilation."""

import re
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from simtbed import LaunchError
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.nvcc import build, find_nvcc, resources, sections
from simtbed.errors import UnavailableError
from simtbed.runtime.engine import Resources

from tests.compilers import needs_nvcc
from tests.texts import texts

KERNEL = texts("compiled/kernels.cu")["constant table"]
REPORT = """\
ptxas info    : Compiling entry function 'other' for 'sm_90'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compiling entry function 'twice' for 'sm_90'
ptxas info    : Function properties for twice
    24 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 24 bytes cumulative stack size, 256 bytes smem
"""


def elf(**sizes: int) -> bytes:
    """Return a minimal ELF file with empty sections of these sizes (dots for underscores)."""
    names = [name.replace("_", ".") for name in sizes]
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in [*names, "names"])
    offsets = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in [*names, "names"]]
    places = [0] * len(names) + [64]
    entries = zip(offsets, places, [*sizes.values(), len(strings)], strict=True)
    headers = b"".join(struct.pack("<IIQQQQ24x", at, 0, 0, 0, place, size) for at, place, size in entries)
    head = b"\x7fELF".ljust(0x28, b"\0") + struct.pack("<Q", 64 + len(strings))
    return head.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, len(sizes) + 1, len(sizes)) + strings + headers


# ------------------------------------------------------------------ the compiler
def executable(folder: Path) -> Path:
    folder.mkdir(parents=True)
    program = folder / "nvcc"
    program.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 0.0, V0.0.0'\n")
    program.chmod(0o755)
    return program


def test_nvcc_is_found_in_path_home_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.path", [str(tmp_path / "none"), str(tmp_path / "site")]
    )  # independent of the import path of packages
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LaunchError, match=r"simtbed\[nvcc\]"):
        find_nvcc()
    packaged = executable(tmp_path / "site/nvidia/cu13/bin")
    assert find_nvcc() == packaged
    home = executable(tmp_path / "home/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_nvcc() == home
    first = executable(tmp_path / "first")
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    assert find_nvcc() == first
    assert nvcc.version(first) == "Cuda compilation tools, release 0.0, V0.0.0"


def test_a_compiler_that_cannot_run_is_named(tmp_path: Path) -> None:
    program = tmp_path / "nvcc"
    program.write_text("not a program")
    with pytest.raises(LaunchError, match="nvcc cannot be run"):
        nvcc.version(program)


# ------------------------------------------------------------------ its report
def test_the_report_of_one_kernel_among_several() -> None:
    actual = resources(REPORT, "twice", elf(_text=80, _nv_constant3=32))
    assert actual == Resources(40, 256, 24, 32, 12, 16)
    assert resources(REPORT, "other", elf(_text=80)) == Resources(8, 0, 0, 0, 0, 0)


def test_a_report_without_the_kernel_is_no_report() -> None:
    with pytest.raises(LaunchError, match="nothing about thrice"):
        resources(REPORT, "thrice", elf(_text=80))


def test_sections_of_an_elf_file() -> None:
    assert {".text": 80, ".nv.constant3": 32}.items() <= sections(elf(_text=80, _nv_constant3=32)).items()


# ------------------------------------------------------------------ the cache
@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts passed to a fake compiler, its results cached below tmp_path."""
    texts: list[str] = []

    def compile(nvcc: Path, text: str, arch: str, options: Sequence[str], suffix: str) -> tuple[bytes, str]:
        texts.append(text)
        return elf(_text=len(texts)), REPORT

    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 1")
    monkeypatch.setattr(nvcc, "_compile", compile)
    return texts


def test_a_text_is_compiled_once(compiled: list[str], tmp_path: Path) -> None:
    first, second = build("text", "twice", "sm_90"), build("text", "twice", "sm_90")
    assert first == second
    assert first.resources.registers == 40
    assert compiled == ["text"]
    assert {p.suffix or p.name for p in (tmp_path / "cache").iterdir()} == {
        ".cubin",
        "key",
    }  # no temporary file remains


def test_text_architecture_options_and_compiler_are_the_key(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build("text", "twice", "sm_90")
    build("text ", "twice", "sm_90")
    build("text", "twice", "sm_80")
    monkeypatch.setattr(nvcc, "OPTIONS", ("-O0",))
    build("text", "twice", "sm_90")
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 2")
    build("text", "twice", "sm_90")
    assert len(compiled) == 5


def test_unwritable_temporary_files_are_no_kernel_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 1")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UnavailableError, match=r"temporary files .* \(TMPDIR names their folder\): No such file"):
        build("text", "twice", "sm_90")


# ------------------------------------------------------------------ with the compiler itself
@pytest.mark.slow
@needs_nvcc
def test_nvcc_builds_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    built = build(KERNEL, "twice", "sm_90")
    assert built.cubin.startswith(b"\x7fELF")
    assert built.resources.shared_bytes == 256
    assert built.resources.constant_bytes == 16
    assert built.resources.registers > 0
    assert re.search(r"release \d+\.\d+", built.compiler)
    assert build(KERNEL, "twice", "sm_90") == built


@needs_nvcc
def test_what_nvcc_refuses_is_shown_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    with pytest.raises(LaunchError) as error:
        build('#line 7 "mine.py"\nint x = y;\n', "k", "sm_90")
    first, *rest = str(error.value).splitlines()
    assert first == "nvcc does not compile the kernel for sm_90"
    assert any("mine.py(7): error" in line for line in rest)
    with pytest.raises(LaunchError, match="sm_1"):
        build(KERNEL, "twice", "sm_1")
