"""Whole CUDA C++ programs that crash, do not end, fork, exec, or end without a return from `main`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.table_checks import check_each

pytest.importorskip("ziglang")

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
__global__ void k(int *x) { x[threadIdx.x] = threadIdx.x; }
__global__ void endless(int *x) { while (atomicAdd(x, 0) == 0) { } }
static int deep(int n) { volatile char c[4096]; c[0] = n; return deep(n + 1) + c[0]; }
static void leave(void *) { exit(5); }
static void launch() { int *d; cudaMalloc(&d, 128); k<<<1, 32>>>(d); cudaDeviceSynchronize(); cudaFree(d); }
int main(int argc, char **argv) {
    const char *what = argv[1];
#define WHEN(WORD) if (!strcmp(what, WORD))
    launch();
    printf("started\n");
    WHEN("crash") { fflush(stdout); *(volatile int *)8 = 1; }
    WHEN("abort") abort();
    WHEN("throw") throw std::runtime_error("thrown");
    WHEN("divide") { volatile int zero = argc - 2; return argc / zero; }
    WHEN("deep") return deep(0);
    WHEN("loop") { alarm(2); for (;;) { } }
    WHEN("limit") { rlimit l{1, 2}; setrlimit(RLIMIT_CPU, &l); for (volatile long i = 0;; i++) { } }
    WHEN("kill") { fflush(stdout); kill(getpid(), SIGKILL); }
    WHEN("terminate") { fflush(stdout); raise(SIGTERM); for (;;) { } }
    WHEN("handler") { signal(SIGUSR1, [](int) { _exit(6); }); raise(SIGUSR1); }
    WHEN("kernel") {
        int *d; cudaMalloc(&d, 4); cudaMemset(d, 0, 4); endless<<<1, 1>>>(d);
        return cudaDeviceSynchronize() == 702 ? 7 : 0;
    }
    WHEN("fork") { int s = 0; fflush(stdout); if (!fork()) { launch(); exit(4); } wait(&s); return WEXITSTATUS(s); }
    WHEN("exec") { fflush(stdout); execl("/bin/sh", "sh", "-c", "echo other; exit 8", (char *)0); }
    WHEN("system") return WEXITSTATUS(system("exit 9"));
    WHEN("quick") { fflush(stdout); _exit(10); }
    WHEN("callback") cudaLaunchHostFunc(0, leave, 0);
    WHEN("thread") { std::thread a(launch), b(launch); a.join(); b.join(); return 11; }
    WHEN("leaving thread") { std::thread a([] { exit(12); }); a.join(); }
    WHEN("many") { for (int i = 0; i < 20000; i++) { void *p; cudaMalloc(&p, 16); cudaFree(p); } return 13; }
    WHEN("kept") { for (int i = 0; i < 20000; i++) { void *p; cudaMalloc(&p, 1); } return 14; }
    WHEN("stdin") { char line[9]; return fgets(line, 9, stdin) ? line[0] : 15; }
    WHEN("end") { atexit([] { printf("after the end\n"); launch(); }); return 16; }
    WHEN("closed") { fclose(stdout); close(1); launch(); return 17; }
    WHEN("large") { void *p; return cudaMalloc(&p, (size_t)1 << 60) == 2 ? 18 : 0; }
    return 0;
}
"""
ENDS = {
    "crash": (139, "crash: ended by SIGSEGV"), "abort": (134, "abort: ended by SIGABRT"), "throw": (134, "throw: ended by SIGABRT"),
    "divide": (136, "divide: ended by SIGFPE"), "deep": (139, "deep: ended by SIGSEGV"), "loop": (142, ""),
    "limit": (152, "limit: ended by SIGXCPU"), "kill": (137, "kill: ended by SIGKILL"), "terminate": (143, ""), "handler": (6, ""),
    "kernel": (7, "without ending"), "fork": (4, ""), "exec": (8, "other"), "system": (9, ""), "quick": (10, ""), "callback": (5, ""),
    "thread": (11, ""), "leaving thread": (12, ""), "many": (13, ""), "kept": (14, "20,000 bytes in 20,000 allocations are not freed"),
    "stdin": (97, ""), "end": (16, "after the end"), "closed": (17, ""), "large": (18, ""), "none": (0, ""),
}  # fmt: skip
"""Exit code and text of the output by the program's argument."""


def _command(folder: Path, word: str) -> tuple[list[str], dict[str, str]]:
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "program.cu").write_text(PROGRAM)
    words = [sys.executable, "-m", "simtbed", "check", "program.cu", "--", word]
    return words, {**os.environ, "TMPDIR": str(folder / "tmp")}


@pytest.mark.slow
@pytest.mark.integration
def test_ends_of_programs(tmp_path: Path) -> None:
    def check(word: str) -> None:
        code, expected = ENDS[word]
        words, environment = _command(tmp_path, word)
        result = subprocess.run(
            words, cwd=tmp_path, env=environment, input="a\n", capture_output=True, text=True, timeout=600, check=False
        )
        output = result.stdout + result.stderr
        assert (result.returncode, expected in output, "Traceback" in output) == (code, True, False), result
        assert result.stderr.count("simtbed:") <= 1 and "k  " in result.stdout, result
        assert not [*(tmp_path / "tmp").iterdir()]

    check_each(ENDS, check)


@pytest.mark.slow
@pytest.mark.integration
def test_signal_during_a_build(tmp_path: Path) -> None:
    """The command forwards it to the process that builds the program, which removes its files."""
    words, environment = _command(tmp_path, "none")
    (tmp_path / "program.cu").write_text(PROGRAM.replace("started", str(os.getpid())))
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not [*(tmp_path / "tmp").glob("*/include")] and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=100)
    assert (process.returncode, output) == (143, b"")
    assert not [*(tmp_path / "tmp").iterdir()]
