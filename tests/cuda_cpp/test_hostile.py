"""Texts that would end a compiler or a process, or read the system's files: each is a kernel or one error."""

import os
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp import clang

from tests.cuda_cpp.hostile_texts import HOSTILE, KERNEL
from tests.table_checks import check_each

REFUSED = {
    "parentheses": (
        "__global__ void k(int *p) { p[0] = " + "(" * 10_000 + "1" + ")" * 10_000 + "; }",
        "nesting level exceeded",
    ),
    "a device": (f'#include "/dev/zero"\n{KERNEL}', "file not found"),
    "a file of the system": (f'#include "/etc/passwd"\n{KERNEL}', "file not found"),
    "a named pipe": (f'#include "fifo.h"\n{KERNEL.replace("1", "F")}', "undeclared identifier 'F'"),
    "an embedded file": (
        '__global__ void k(int *p) { static const unsigned char t[] = {\n#embed "/etc/passwd"\n}; p[0] = t[0]; }',
        "file not found",
    ),
    "a recursive template": (
        "template <int N> struct A { static constexpr int v = A<N-1>::v + 1; };\n"
        "__global__ void k(int *p) { p[0] = A<100000>::v; }",
        "recursive template instantiation",
    ),
    "a crash": (f"#pragma clang __debug crash\n{KERNEL}", "ended with status"),
    "mutual recursion": (
        "__device__ int g(int); __device__ int f(int n) { return g(n) + g(n + 1); } __device__ int g(int n) { return f(n); }\n"
        "__global__ void k(int *p) { p[0] = f(1); }",
        "recursion is not supported",
    ),
    "128 bits": ("__global__ void k(int *p) { __int128 a = p[0]; p[0] = (int)(a * a >> 3); }", "integers of 128 bits"),
    "a symbol of the headers": (
        '__device__ int f(int) __asm__("simtbed.op.add.i32.01"); __global__ void k(int *p) { p[0] = f(1); }',
        "the function simtbed.op.add.i32.01 is not supported",
    ),
    "the symbol of the entry": (
        f'extern "C" __device__ void simtbed_entry() {{}} {KERNEL}',
        "LLVM does not read the code",
    ),
    "junk": ("}}}}{{{{((((", "the text has no kernel k"),
    "nothing": ("", "the text has no kernel k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_text_is_one_error(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.h")
    text, message = REFUSED[name]
    with pytest.raises(st.SimtbedError, match=message):
        st.cuda_source(text, (f"-I{tmp_path}",))["k"].signature()


def test_the_compiler_has_limits(tmp_path: Path) -> None:
    command = "for limit in t v f c; do ulimit -$limit; done >&2"
    status, limits = clang._run(["/bin/sh", "-c", command], str(tmp_path))
    assert (status, limits.split()) == (0, [str(own) for own in (clang.SECONDS, clang.KIBIBYTES, clang.BLOCKS, 0)])


@pytest.mark.slow
def test_each_kind_of_text_is_a_kernel_or_one_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, content in (
        ("self.h", b'#include "self.h"\n'),
        ("latin.h", "// größe\n".encode("latin-1")),
        ("wide.h", "int a;\n".encode("utf-16")),
        ("null.h", b"int a;\0\n"),
    ):
        (tmp_path / name).write_bytes(content)

    def check(name: str) -> None:
        text, expected = HOSTILE[name]
        message = ""
        try:
            st.cuda_source(text, (f"-I{tmp_path}",))["k"].signature()
        except st.SimtbedError as error:
            message = str(error)
        assert expected in message.partition("\n")[0] and bool(message) == bool(expected), message[:300]
        assert max(map(len, message.splitlines()), default=0) < 1000

    check_each(HOSTILE, check)


def test_files_without_text_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.cu")
    for path in ("/dev/zero", tmp_path / "fifo.cu", tmp_path, tmp_path / "absent.cu"):
        with pytest.raises(st.SimtbedError, match=r"expected a regular file|Is a directory|No such file"):
            st.cuda_file(str(path))


@pytest.mark.slow
def test_the_compiler_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clang, "SECONDS", 1)
    bomb = "#define A(x) " + "x " * 10 + f"\n__global__ void k(int *p) {{ {'A(' * 8}p[0]++;{')' * 8} }}"
    with pytest.raises(st.SimtbedError, match=r"ended with status|is not compiled in"):
        st.cuda_source(bomb)["k"]


def test_a_link_out_of_the_folders_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "outside.h").write_text("#define F 3\n")
    (tmp_path / "own/link.h").symlink_to(tmp_path / "outside.h")
    with pytest.raises(st.CompileError, match=r"undeclared identifier 'F'.*not found: link\.h"):
        st.cuda_source(f'#include "link.h"\n{KERNEL.replace("1", "F")}', (f"-I{tmp_path / 'own'}",))["k"]


def test_files_are_read_when_a_text_is_given(tmp_path: Path) -> None:
    (tmp_path / "f.h").write_text("#define F 2\n")
    (tmp_path / "k.cu").write_text('#include "f.h"\n__global__ void k(int *o) { o[threadIdx.x] = F * threadIdx.x; }\n')
    source = st.cuda_file(str(tmp_path / "k.cu"))
    (tmp_path / "f.h").write_text("#define F 5\n")
    assert st.launch(source["k"], grid=1, block=4, args=(st.zeros(4, st.i32),)).o.tolist() == [0, 2, 4, 6]


@pytest.mark.slow
@pytest.mark.parametrize("count", [160, 600])
def test_a_long_chain_is_a_kernel(count: int) -> None:
    arms = "".join(f"    {'else ' if n else ''}if (v == {n}) r = {n % 7};\n" for n in range(count))
    text = (
        f"__global__ void k(const int *x, int *out) {{ int v = x[threadIdx.x], r = -1;\n{arms} out[threadIdx.x] = r; }}"
    )
    x = np.array([0, count // 2, count - 1, count], np.int32)
    out = st.launch(st.cuda_source(text)["k"], grid=1, block=4, args=(x, st.zeros(4, st.i32))).out
    assert out.tolist() == [0, count // 2 % 7, (count - 1) % 7, -1]
