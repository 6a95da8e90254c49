"""Kernels of cubins, launched by `st.cubin`: values, counters, architectures, mistakes, damaged files."""

import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import LaunchError, SimtbedError
from simtbed.engines.cuda import nvcc
from simtbed.reports.profile.predicted import executed_cubins, predict
from simtbed.runtime.cubin_launch import CubinLaunch

from tests.compilers import needs_sass
from tests.table_checks import check_each
from tests.texts import texts

SOURCE = texts("compiled/kernels.cu")["cubin file"]
PAIR = np.array((5, 7.5), np.dtype([("a", "i4"), ("b", "f8")], align=True))
X, Y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
pytestmark = needs_sass


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cubin of each architecture."""
    folder = tmp_path_factory.mktemp("cubins")
    (folder / "kernels.cu").write_text(SOURCE)
    for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"):
        command = [str(nvcc.find_nvcc()), "-cubin", "-lineinfo", f"-arch={arch}", "-o", f"{arch}.cubin", "kernels.cu"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.mark.slow
def test_values_and_counters_on_each_architecture(build: Path) -> None:
    for arch in ("sm_80", "sm_86", "sm_89", "sm_90"):
        kernels = st.cubin(build / f"{arch}.cubin")
        assert (kernels.architecture, sorted(kernels)) == (arch, ["saxpy", "sum"])
        result = kernels["saxpy"].launch(X, Y, 2.0, 1000, grid=8, block=128)
        assert (result.arguments[1] == 2 * X + 1).all() and (Y == 1).all()
        counters = result.counters
        assert (counters["global_load_sectors"], counters["global_store_requests"]) == (250, 32)
        summed = kernels["sum"].launch(np.arange(64, dtype=np.int32), PAIR, 4, grid=1, block=64, shared=256)
        assert summed.arguments[0][0] == 64 * 63 // 2 + 3 + 5 + 7 + 4
    assert "kernels.cu:3" in str(result) and "LDG.E" in str(result) and "global load sectors" in str(result)


@pytest.mark.slow
def test_clusters_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters by axis, generic accesses of both memories, atomics of floats in other blocks: the values of the jit engine, and no time."""
    source = texts("compiled/kernels.cu")["clusters"]
    (tmp_path / "kernels.cu").write_text(source)
    command = [str(nvcc.find_nvcc()), "-cubin", "-arch=sm_90", "-o", "kernels.cubin", "kernels.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)
    x, out = np.random.default_rng(3).integers(0, 1000, 16 * 64).astype(np.int32), np.arange(2048, dtype=np.int32)
    args = {"x": x, "out": out, "sums": np.zeros(32)}
    expected = st.launch(st.cuda_source(source)["exchanged"], grid=(4, 4), block=64, args=args, check="all")
    launches = list[CubinLaunch]()
    monkeypatch.setattr("simtbed.compiled.cubin_file.cubin_receivers", [launches.append])
    exchanged = st.cubin(tmp_path / "kernels.cubin")["exchanged"]
    _, values, sums = exchanged.launch(x, out, np.zeros(32), grid=(4, 4), block=64).arguments
    assert np.array_equal(values, expected["out"]) and np.array_equal(sums, expected["sums"])
    with pytest.raises(
        LaunchError, match=r"a grid of \(3, 4, 1\) blocks is not divisible into clusters of \(2, 2, 1\)"
    ):
        exchanged.launch(x, out, np.zeros(32), grid=(3, 4), block=64)
    assert [predict(one) for one in executed_cubins(launches, "*")] == [
        "the time of clusters of blocks is not predicted"
    ]


@pytest.mark.slow
def test_mistakes_are_one_line(build: Path) -> None:
    kernels = st.cubin(build / "sm_90.cubin")
    saxpy, total = kernels["saxpy"], kernels["sum"]
    how: dict[str, Any] = {"grid": 8, "block": 128}
    cases = [
        (lambda: st.cubin(build / "sm_75.cubin"), "is of sm_75"),
        (lambda: st.cubin(b"text"), "expected a 64-bit ELF file"),
        (lambda: st.cubin("/dev/zero"), "expected a regular file"),
        (lambda: kernels["saxpi"], "do you mean saxpy?"),
        (lambda: saxpy.launch(X, Y, 2.0, **how), "takes 4 arguments: 3 are given"),
        (lambda: saxpy.launch(X, Y, 2.0, 1 << 40, **how), "argument 3 has 4 bytes"),
        (lambda: saxpy.launch(X, Y, "2", 1000, **how), "argument 2 has 4 bytes, got a str"),
        (lambda: saxpy.launch(X, Y, 2.0, 1000, grid=8, block=2048), "at most 1,024"),
        (lambda: saxpy.launch(X, Y, 2.0, 1001, **how), "0 bytes past the end of argument 0: LDG.E"),
        (lambda: saxpy.launch(5, Y, 2.0, 10, **how), "the address 0x5 is outside"),
        (lambda: total.launch(np.arange(64, dtype=np.int32), PAIR, 4, grid=1, block=64), "STS"),
    ]

    def check(case: tuple[object, str]) -> None:
        with pytest.raises(SimtbedError) as caught:
            case[0]()  # type: ignore[operator]
        assert case[1] in str(caught.value) and "\n" not in str(caught.value)

    check_each(cases, check, lambda case: case[1])


@pytest.mark.slow
def test_damaged_files(build: Path) -> None:
    """A file with changed or missing bytes is refused, or runs."""
    content, random = (build / "sm_90.cubin").read_bytes(), Random(1)
    refused = 0
    for _ in range(100):
        damaged = bytearray(content[: random.choice([len(content), random.randrange(len(content))])])
        for _ in range(random.choice([1, 10])):
            if damaged:
                damaged[random.choice([random.randrange(len(damaged)), random.randrange(len(damaged)) % 64])] = (
                    random.randrange(256)
                )
        try:
            st.cubin(bytes(damaged))["saxpy"].parameters  # noqa: B018
        except LaunchError:
            refused += 1
    assert refused > 50
