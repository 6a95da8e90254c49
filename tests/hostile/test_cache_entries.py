"""Entries of the disk cache: a damaged entry is recompiled without an error."""

import errno
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, disk_cache, i32
from simtbed.engines.cuda import nvcc, sass
from simtbed.engines.cuda.binary import binary
from simtbed.engines.llvm import module
from simtbed.engines.llvm.engine import WORTH_OPTIMISING, LlvmEngine
from simtbed.frontend import reader
from simtbed.llvm import compiler
from simtbed.native import native
from simtbed.runtime.request import prepare_request

from tests.hardware.listing import listing
from tests.language.test_cuda_build import REPORT, elf

KINDS = (".o", ".helper", ".slow", ".cubin", ".kernel", ".listing")


@st.kernel
def quotients(x: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * 32 + st.thread.x
    out[i] = x[i] // x[i + 1]


@native
def summed(x: Global[i32], n: i32) -> i32:
    total = 0
    for i in range(n):
        total += x[i]
    return total


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_compilers(monkeypatch)


def _replace_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace nvcc and nvdisasm."""
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 1")
    monkeypatch.setattr(nvcc, "_compile", lambda *_: (elf(_text=80), REPORT + REPORT.replace("twice", "quotients")))
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(sass, "_listing", lambda *_: listing("quotients", "1 | EXIT"))


@pytest.fixture
def cache(compilers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A cache with entries of all kinds, to copy, and the results of `compile_all`."""
    folder = tmp_path_factory.mktemp("filled") / "cache"
    with pytest.MonkeyPatch.context() as patched:
        _replace_compilers(patched)
        patched.setenv("SIMTBED_CACHE", str(folder))
        return folder, compile_all()


@pytest.fixture
def expected(cache: Path, filled: tuple[Path, list[Any]]) -> list[Any]:
    """The results of `compile_all`; the cache gets its entries."""
    shutil.copytree(filled[0], cache)
    return filled[1]


def compile_all() -> list[Any]:
    """What this process needs of every kind of entry, as in a new process."""
    compiler._HELPERS.clear()
    compiler._RECENT.clear()
    vars(quotients).pop("_facts", None)
    summed._codes.clear()
    x = np.arange(1, 66, dtype=np.int32)
    engine = LlvmEngine()
    request = prepare_request(quotients, grid=2, block=32, args={"x": x, "out": st.empty(64, "i32")})
    result = engine.run(request)
    (kernel,) = engine._kernels[request.specialisation].values()
    kernel.record_runtime(2 * WORTH_OPTIMISING)
    assert result.counts is not None
    sass._disassembled.cache_clear()
    cuda = [nvcc.build("text", "twice", "sm_90"), binary(request, "sm_90"), sass.disassemble(b"cubin", "quotients")]
    return [result.buffers["out"].tolist(), result.counts.tolist(), summed(x, 65), *cuda]


def from_disk() -> list[Any]:
    """The same, where the disk has all of it."""
    compile_all()  # what is optimised now
    with pytest.MonkeyPatch.context() as patched:
        for place, name in (
            (compiler, "object_code"), (module, "kernel_module"), (nvcc, "_compile"), (reader, "specialise"), (sass, "_listing"),
        ):  # fmt: skip
            patched.setattr(place, name, lambda *_: pytest.fail("made again"))
        return compile_all()


def entries(cache: Path, kind: str) -> list[Path]:
    return sorted(path for path in cache.iterdir() if path.suffix == kind)


def whole(cache: Path) -> set[str]:
    """The names of entries that can be read."""
    return {path.name for path in cache.iterdir() if disk_cache.load(path.name, bytes) is not None}


def names(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}


# ------------------------------------------------------------------ damage
def _damaged(data: bytes) -> Iterator[bytes]:
    """Every byte of the head and of what follows it, bytes all over the content, and every end."""
    for place in [*range(min(len(data), 100)), *range(100, len(data), 1 + len(data) // 200)]:
        yield data[:place]
        yield data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
    yield data + b"\0"
    yield data[: len(data) // 2] * 2
    yield bytes(len(data))


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_is_read(cache: Path, expected: list[Any], kind: str) -> None:
    path = max(entries(cache, kind), key=lambda path: path.stat().st_size)
    data = path.read_bytes()
    assert disk_cache.load(path.name, bytes) is not None
    for damaged in _damaged(data):
        path.write_bytes(damaged)
        assert disk_cache.load(path.name, bytes) is None
    path.write_bytes(data)
    assert disk_cache.load(path.name, bytes) is not None


def _swapped(path: Path) -> bytes:
    other = next(one for one in path.parent.iterdir() if one.name not in (path.name, "key"))
    return other.read_bytes()


DAMAGES: dict[str, Callable[[Path], bytes]] = {
    "nothing": lambda _: b"",
    "half": lambda path: path.read_bytes()[: path.stat().st_size // 2],
    "one bit": lambda path: path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]),
    "another entry": _swapped,
}


@pytest.mark.parametrize(("kind", "damage"), [*zip(KINDS, itertools.cycle(DAMAGES), strict=False), ("key", "half")])
def test_damaged_entries_are_recompiled(cache: Path, expected: list[Any], kind: str, damage: str) -> None:
    for path in [cache / "key"] if kind == "key" else entries(cache, kind):
        path.write_bytes(DAMAGES[damage](path))
    disk_cache._find_folder.cache_clear()
    assert compile_all() == expected
    assert from_disk() == expected


JUNK = {
    "nothing": b"",
    "random": random.Random(0).randbytes(300),
    "a header alone": (2).to_bytes(8, "little") + b"{}",
    "no object": compiler._pack({"metadata": "", "name": "f", "helpers": {}}, random.Random(1).randbytes(300)),
    "half an object": compiler._pack({"metadata": "", "name": "f", "helpers": {}}, elf(_text=80)[:100]),
    "another list": b"[]",
    "deep": b"[" * 100_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != ".slow"])  # a note has no content
def test_junk_with_a_valid_digest_is_recompiled(cache: Path, expected: list[Any], kind: str) -> None:
    for junk in JUNK.values():
        for path in entries(cache, kind):
            disk_cache.save(path.name, junk)
        assert compile_all() == expected
    assert from_disk() == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".o", ".helper"])
def test_changed_code_with_a_valid_digest_is_not_linked(cache: Path, expected: list[Any], kind: str) -> None:
    """LLVM would end the process over some of these changes."""
    for seed in range(10):
        for path in entries(cache, kind):
            content = disk_cache.load(path.name, bytes)
            assert content is not None
            start, chosen = 8 + int.from_bytes(content[:8], "little"), random.Random(seed)
            place = chosen.choice(
                [start + chosen.randrange(64), chosen.randrange(start, len(content))]
            )  # the ELF header too
            disk_cache.save(
                path.name, content[:place] + bytes([content[place] ^ chosen.randrange(1, 256)]) + content[place + 1 :]
            )
        assert compile_all() == expected
    assert from_disk() == expected


def test_an_entry_of_another_cache_is_not_read(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest was made with another secret."""
    disk_cache.save("a" * 64 + ".o", b"content")
    planted = (cache / ("a" * 64 + ".o")).read_bytes()
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "other"))
    disk_cache.save("b" * 64 + ".o", b"content")
    (tmp_path / "other" / ("a" * 64 + ".o")).write_bytes(planted)
    assert whole(tmp_path / "other") == {"b" * 64 + ".o"}


def test_a_helper_that_calls_itself_is_recompiled(cache: Path, expected: list[Any]) -> None:
    for path in entries(cache, ".helper"):
        disk_cache.save(path.name, compiler._pack({"name": "f", "helpers": {"f": path.name}}, b""))
    assert compile_all() == expected


# ------------------------------------------------------------------ objects in place of an entry
def _no_regular_file(path: Path, kind: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link":
        path.with_name("elsewhere").write_bytes(data)
        path.symlink_to("elsewhere")
    elif kind == "a circle":
        path.symlink_to(path.name)
    elif kind == "what others can write":
        path.write_bytes(data)
        path.chmod(0o666)
    elif kind == "a hole":
        with open(path, "wb") as file:
            file.truncate(1 << 40)


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link", "a circle", "what others can write", "a hole"])
def test_only_own_regular_files_are_read(cache: Path, expected: list[Any], kind: str) -> None:
    paths = [path for path in cache.iterdir() if path.name != "key"]
    for path in paths:
        _no_regular_file(path, kind)
    assert all(disk_cache.load(path.name, bytes) is None for path in paths)
    assert compile_all() == expected
    if kind != "a folder":
        assert from_disk() == expected
    assert not list(cache.glob("*.part"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_entry_of_another_user_is_not_read(cache: Path, expected: list[Any]) -> None:
    for path in cache.iterdir():
        os.chown(path, 65534, 65534)
    assert whole(cache) == set()
    disk_cache._find_folder.cache_clear()
    assert compile_all() == expected
    assert from_disk() == expected


# ------------------------------------------------------------------ faults of the disk
CALLS = ("open", "link", "replace", "unlink", "fstat", "lstat", "mkdir", "scandir", "access")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int) -> None:
    """Each call of the system fails from its first, second ... use on, on an empty cache."""
    disk_cache.edition()  # reads the package itself, not the cache
    for first in range(4):
        monkeypatch.setenv("SIMTBED_CACHE", str(cache / str(first)))
        with monkeypatch.context() as patched:
            patched.setattr(os, call, _failing(getattr(os, call), first, code, cache))
            for number in range(3):
                name = f"{number:064x}.o"
                disk_cache.save(name, b"content")
                assert disk_cache.load(name, bytes) in (b"content", None)
        disk_cache._find_folder.cache_clear()
        disk_cache.save(name, b"later")
        assert disk_cache.load(name, bytes) in (b"later", b"content", None)
        disk_cache._DISABLED.clear()


def _failing(real: Callable[..., Any], first: int, code: int, below: Path) -> Callable[..., Any]:
    calls = 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        if arguments and isinstance(arguments[0], (str, Path)) and not str(arguments[0]).startswith(str(below)):
            return real(*arguments, **named)
        calls += 1
        if calls > first:
            raise OSError(code, os.strerror(code), *map(str, arguments[:1]))
        return real(*arguments, **named)

    return call


def test_a_full_disk_ends_keeping_for_this_run(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.save("a" * 64 + ".o", b"before")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", _failing(os.replace, 0, errno.ENOSPC, cache))
        disk_cache.save("b" * 64 + ".o", b"meanwhile")
    disk_cache.save("c" * 64 + ".o", b"after")
    assert whole(cache) == {"a" * 64 + ".o"} and not list(cache.glob("*.part"))


# ------------------------------------------------------------------ what is left behind
def test_remains_of_processes_and_old_entries_are_deleted(cache: Path) -> None:
    disk_cache.save("a" * 64 + ".o", b"")
    old, left, mine = cache / ("b" * 64 + ".o"), cache / ("c" * 64 + ".o." + "0" * 16 + ".part"), cache / "thesis.txt"
    for path in (old, left, mine, cache / "key"):
        path.write_bytes(path.read_bytes() if path.exists() else b"")
        os.utime(path, (1, 1))
    disk_cache._sweep.cache_clear()
    disk_cache.save("d" * 64 + ".o", b"")
    assert names(cache) == {"a" * 64 + ".o", "d" * 64 + ".o", "thesis.txt", "key"}


# ------------------------------------------------------------------ editions
def test_the_edition_is_of_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same size and time, but other content, is another edition."""

    def edition() -> str:
        disk_cache.edition.cache_clear()
        return disk_cache.edition()

    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "disk_cache.py"))
    monkeypatch.setattr(disk_cache, "_PROCESS_START", 1 << 62)  # the files are there before the process
    (tmp_path / "engines").mkdir()
    source = tmp_path / "engines" / "module.py"
    editions = set()
    for text in ("x = 1\n", "x = 2\n"):
        source.write_text(text)
        os.utime(source, (1, 1))
        editions.add(edition())
    source.rename(tmp_path / "engines" / "other.py")
    editions.add(edition())
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "module.py").write_text("x = 1\n")
    assert edition() in editions and len(editions) == 3
    disk_cache.edition.cache_clear()
