"""Programs of Triton on the emulator: results by PyTorch, findings at lines and columns, refusals."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
FEATURES, MISTAKES = (FOLDER / "features.py", FOLDER / "block_features.py"), FOLDER / "mistakes.py"
HAVE = all(find_spec(name) is not None for name in ("triton", "torch"))
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not HAVE, reason="triton and torch are not installed: pip install 'simtbed[triton]'"),
]
WORDS = {
    "missing_mask": "the mask does not cover a read out of bounds: x_ptr[1001], but x_ptr has 1001 elements",
    "wrong_stride": "the mask does not cover a write out of bounds: out_ptr[1000], but out_ptr has 1000 elements",
    "lost_update": "use tl.atomic_add, or write to another tensor than the one read",
    "neighbour": "to order them: tl.debug_barrier()",
    "unwritten_memory": "global read of x_ptr[0], which was never written",
}
SUM = """
import torch
import triton
import triton.language as tl

@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, 2), tl.sum(x, 0))

out = torch.empty(2, device="cuda")
total[(1,)](torch.ones(64, device="cuda"), out, BLOCK=64)
"""
IN_PLACE = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

double[(1,)](torch.ones(30, device="cuda"), 30, BLOCK=32)
"""
EMPTY = """
import torch
import triton
import triton.language as tl

@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

x, y = torch.rand(1000, device="cuda"), torch.rand(1000, device="cuda")
rows, out = torch.empty(2, 1000, device="cuda"), torch.empty_like(x)
copy[(8,)](x, rows[1], 1000, BLOCK=128)
assert (rows[1] == x).all() and rows.view(-1)[1000:].shape == x.shape
filled, added = torch.empty_like(x).fill_(1), torch.empty_like(x)
torch.add(x, y, out=added)
filled += 1
filled[0] = added.sum()
copy[(8,)](filled, torch.empty_like(x), 1000, BLOCK=128)

@torch.library.custom_op("own::fill", mutates_args={"values"})
def fill(values: torch.Tensor) -> torch.Tensor:
    values.numpy()[:] = 1
    return torch.ones(1)

operated, replaced = torch.empty_like(x), torch.empty_like(x)
torch.ops.own.fill(operated)
replaced.data = torch.ones(1000, device="cuda")
copy[(8,)](operated, replaced, 1000, BLOCK=128)
copy[(8,)](replaced, operated, 1000, BLOCK=128)
torch.eye(3, device="cuda").to_sparse().sum()
copy[(4,)](x, out, 1000, BLOCK=128)  # 4 of 8 programs
assert out[:512].sum() > 0
out.sum()
rows.cpu()
copy[(8,)](out, x, 1000, BLOCK=128)
"""
PRODUCT = """
import torch
import triton
import triton.language as tl

@triton.jit
def product(a_ptr, b_ptr, c_ptr, K):
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 32):
        some = tl.arange(0, 32)
        a = tl.load(a_ptr + rows * K + some[None, :] + k)
        b = tl.load(b_ptr + (some[:, None] + k) * 64 + columns)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows * 64 + columns, total)

torch.manual_seed(1)
a, b = (torch.randn(size, dtype=torch.float16, device="cuda") for size in ((64, 128), (128, 64)))
c = torch.empty(64, 64, device="cuda")
product[(1,)](a, b, c, 128, num_stages=3)
torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)
print("equal")
"""


def run(*command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `python` with arguments under the emulation of Triton and compare the exit code."""
    own = os.environ | {"SIMTBED_TRITON": "1", "PYTHONPATH": str(FOLDER.parents[1])}
    arguments = [sys.executable, *map(str, command)]
    completed = subprocess.run(arguments, env=own, capture_output=True, text=True, timeout=1200, check=False)
    assert completed.returncode == code, f"exit code {completed.returncode}\n{completed.stdout}\n{completed.stderr}"
    return completed


@pytest.mark.parametrize("device", ["A100", "H200"])
@pytest.mark.parametrize("script", FEATURES, ids=lambda path: path.stem)
def test_features_have_the_results_of_pytorch(script: Path, device: str) -> None:
    names = re.findall(r"^@feature\ndef (\w+)", script.read_text(encoding="utf-8"), re.MULTILINE)
    completed = run("-m", "simtbed", "profile", "--device", device, "--emulate", "triton", script, *names)
    assert re.findall(r"^equal: (\w+)", completed.stderr, re.MULTILINE) == names


@pytest.mark.parametrize(
    "kernel", re.findall(r"^@triton\.jit\ndef (\w+)\(.*_ptr.*n\b", MISTAKES.read_text("utf-8"), re.M)
)
def test_mistakes_are_found_at_line_and_column(kernel: str) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(f"def {kernel}("))
    start = first if kernel != "unwritten_memory" else first - 6
    marks = ((n, line, re.search(r"  # ([a-z ]+): (.*)", line)) for n, line in enumerate(lines[start:], start + 1))
    line, text, mark = next((n, text, match) for n, text, match in marks if match is not None)
    assert mark is not None
    completed = run("-m", "simtbed", "check", "--json", "--emulate", "triton", MISTAKES, kernel, code=1)
    faults = json.loads(completed.stdout)["kernels"][0]["faults"]
    places = [(fault["kind"], fault["line"], fault["column"]) for fault in faults]
    assert (mark[1], line, text.index(mark[2]) + 1) in places, faults
    words = json.dumps(faults[0])
    assert WORDS[kernel] in words and "program (" in words and "block (" not in words, words


def test_bytes_that_no_program_wrote(tmp_path: Path) -> None:
    """Each line that reads some is named: a kernel's as a finding, PyTorch's as a remark. Views, copies and writes are known."""
    script = tmp_path / "kernel.py"
    script.write_text(EMPTY, encoding="utf-8")
    completed = run("-m", "simtbed", "check", "--json", "--emulate", "triton", script, code=1)
    kernel, host = json.loads(completed.stdout)["kernels"]
    assert [(one["line"], one["message"]) for one in kernel["faults"]] == [
        (9, "global read of x_ptr[512], which was never written"),
    ]
    lines = EMPTY.splitlines()
    assert [(lines[one["line"] - 1], one["message"]) for one in host["remarks"]] == [
        ("out.sum()", "a read by PyTorch: 1,952 of 4,000 bytes were never written"),
        ("rows.cpu()", "a read by PyTorch: 4,000 of 8,000 bytes were never written"),
    ]
    (tmp_path / "test_kernel.py").write_text("def test_kernel():\n    import kernel\n", encoding="utf-8")
    assert kernel["faults"][0]["message"] in run("-m", "pytest", "-q", "--simtbed-check=all", tmp_path, code=1).stdout


@pytest.mark.parametrize("text", [SUM, IN_PLACE])
def test_threads_with_copies_of_elements_are_no_remark(text: str, tmp_path: Path) -> None:
    """Threads without an element of their own write the sum of another warp's thread, or load an element that another one stores."""
    script = tmp_path / "kernel.py"
    script.write_text(text, encoding="utf-8")
    (kernel,) = json.loads(run("-m", "simtbed", "check", "--json", "--emulate", "triton", script).stdout)["kernels"]
    assert kernel["faults"] == kernel["remarks"] == []


@pytest.mark.parametrize("device", ["A100", "H100"])
def test_a_pipelined_product(tmp_path: Path, device: str) -> None:
    """The tensor cores of sm_80 (`mma`, `ldmatrix`), and those of sm_90 (`wgmma`, whose reads wait for it)."""
    script = tmp_path / "product.py"
    script.write_text(PRODUCT, encoding="utf-8")
    for command in ("check", "profile", "verify"):
        completed = run("-m", "simtbed", command, "--device", device, "--emulate", "triton", script)
        assert "equal" in completed.stderr  # the report is on stdout


TUNED = """
import torch
import triton
import triton.language as tl
from triton.testing import do_bench

@triton.autotune([triton.Config({"BLOCK": block}, num_warps=4) for block in (32, 1024)], key=["n"])
@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + 1, mask=i < n)

x = torch.zeros(1 << 17, device="cuda")
out = torch.empty_like(x)
run = lambda: add[lambda meta: (triton.cdiv(len(x), meta["BLOCK"]),)](x, out, len(x))
run()
print("chosen", add.best_config.kwargs["BLOCK"])
print("milliseconds", do_bench(run), do_bench(run, quantiles=[0.5, 0.2]))
"""


def test_the_predicted_time_chooses_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's own machine code is profiled by line."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # a stored kernel has the file of its first compilation
    script = tmp_path / "tuned.py"
    script.write_text(TUNED, encoding="utf-8")
    completed = run("-m", "simtbed", "profile", "--emulate", "triton", script)
    assert "chosen 1024" in completed.stderr
    time, *quantiles = re.findall(r"milliseconds ([\d.]+) \[([\d.]+), ([\d.]+)\]", completed.stderr)[0]
    assert set(quantiles) == {time} and 0.002 < float(time) < 0.01
    assert re.search(r"^add: [\d.]+ us predicted on H200 \([\d.]+ to [\d.]+\), bound by \w+$", completed.stdout, re.M)
    assert re.search(r"tuned.py:\d+ +tl.store\(out_ptr.* \d+%", completed.stdout)


def test_benchmarks_without_a_predicted_time(tmp_path: Path) -> None:
    """A product has none on the A100, and a checked launch needs none: each configuration is checked."""
    script = tmp_path / "tuned.py"
    script.write_text(
        f"{PRODUCT}\nfrom triton.testing import do_bench\n"
        'print("milliseconds", do_bench(lambda: product[(1,)](a, b, c, 128), quantiles=[0.5, 0.2]))\n',
        encoding="utf-8",
    )
    printed = run("-m", "simtbed", "profile", "--device", "A100", "--emulate", "triton", script).stderr
    assert "product: no predicted time: the time of matrix instructions" in printed and "[inf, inf]" in printed
    script.write_text(TUNED.replace(", mask=i < n", "", 1).replace("1 << 17", "1000"), encoding="utf-8")
    completed = run("-m", "simtbed", "check", "--emulate", "triton", script, code=1)
    assert "the mask does not cover a read out of bounds: x_ptr[1000]" in completed.stdout


def test_a_program_is_a_cluster_of_blocks(tmp_path: Path) -> None:
    script = tmp_path / "product.py"
    for blocks in (2, 4):
        script.write_text(PRODUCT.replace("num_stages=3", f"num_ctas={blocks}"), encoding="utf-8")
        completed = run("-m", "simtbed", "check", "--device", "H100", "--emulate", "triton", script)
        assert "equal" in completed.stderr and "findings" in completed.stdout


def test_kernels_run_in_pytest(tmp_path: Path) -> None:
    file = tmp_path / "test_product.py"
    file.write_text(
        f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nfrom features import add as test_add\n", encoding="utf-8"
    )
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", file).stdout
