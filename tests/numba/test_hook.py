"""The import hook: a program with a child process, the refusal of CUDASIM and of other versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed import numba_hook
from simtbed.numba.__main__ import main
from simtbed.numba.packages import NUMBA_CUDA
from simtbed.numba_hook import STARTUP, VARIABLE, is_requested, request

from tests.numba.running import CONTAINERS, IDIOMS, run

pytestmark = pytest.mark.integration

PROGRAM = """
import multiprocessing
import sys

import numpy as np
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    x[i] *= 2


def total(count):
    x = cuda.to_device(np.arange(count, dtype=np.float32))
    double[1, count](x)
    return float(x.copy_to_host().sum())


if __name__ == "__main__":
    print(total(32), cuda.get_current_device().name)
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(total, [64]))
    x = cuda.device_array(8, np.float32)
    double[1, 9](x)
"""


@pytest.mark.slow
def test_a_program_its_child_process_and_its_mistake(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    completed = run("-m", "simtbed.numba", script, "spawn", code=1)
    assert completed.stdout.splitlines() == [f"{np.arange(32).sum() * 2:.1f} simtbed H200", "[4032.0]"]
    finding = completed.stderr.splitlines()
    start = next(n for n, line in enumerate(finding) if "out of bounds" in line)
    assert "program.py:12:5: global read out of bounds: x[8], but x has 8 elements" in finding[start]
    assert finding[start + 2].strip(" |") == "^^^^"
    assert "dispatcher.py" not in completed.stderr  # the traceback ends at the launch


LIBRARY = """
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i <= x.size:
        x[i] *= 2
"""


@pytest.mark.slow
@pytest.mark.skipif(numba_hook._has_driver(), reason="a machine with NVIDIA's driver")
def test_kernels_of_an_imported_library_are_emulated(tmp_path: Path) -> None:
    (tmp_path / "doubling.py").write_text(LIBRARY)
    script = tmp_path / "program.py"
    script.write_text("import numpy as np\nfrom doubling import double\n\ndouble[1, 9](np.ones(8))\n")
    completed = run("-m", "simtbed", "check", script, code=1)
    assert (
        "doubling.py:9:9: global read out of bounds: x[8], but x has 8 elements" in completed.stdout + completed.stderr
    )
    assert "simtbed: numba.cuda emulated: kernels run on an emulator" in completed.stderr
    completed = run("-m", "simtbed", "check", "--emulate", "none", script, code=1)
    assert "CUDA driver library cannot be found" in completed.stderr


@pytest.mark.slow
def test_idioms_have_the_results_of_numpy() -> None:
    assert run("-m", "simtbed.numba", IDIOMS).stdout == "equal\n"


def test_the_environment_of_child_processes() -> None:
    environment = {"PYTHONPATH": "own"}
    request(environment)
    request(environment)
    assert environment == {VARIABLE: "1", "PYTHONPATH": f"{STARTUP}:own"}
    assert (Path(STARTUP) / "sitecustomize.py").exists() and not is_requested()


def test_versions_are_refused_by_name() -> None:
    older = replace(NUMBA_CUDA, tested={"numba-cuda": ("0.29.",)})
    with pytest.raises(st.UnavailableError, match=r"numba-cuda 0\.30\.4 is not supported: .*numba-cuda 0\.29\.\*"):
        older.require_versions()
    missing = replace(NUMBA_CUDA, tested={"missing-package": ("1.0",)})
    with pytest.raises(st.UnavailableError, match=r"missing-package is not installed: pip install"):
        missing.require_versions()


def test_wrong_arguments_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--unknown"], ["missing.py"]):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == 2 and "usage: python -m simtbed.numba" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("reference_counts", ["0", "1"])
def test_iterators_reshapes_tuples_prints_and_conversions(reference_counts: str) -> None:
    completed = run("-m", "simtbed.numba", CONTAINERS, environment={"NUMBA_CUDA_ENABLE_NRT": reference_counts})
    assert completed.stdout.splitlines() == [
        "True x 1.500000 False 9223372036854775808",
        "'float' object cannot be interpreted as an integer",
        "(class(float32), float32)",
    ]


OVERLAP = """
import numpy as np
from numba import cuda


@cuda.jit
def smooth(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 0.5 * (x[i] + x[i + 1])


values = cuda.to_device(np.arange(65, dtype=np.float32))
smooth[1, 64](values, values[:64])
"""


@pytest.mark.slow
def test_a_race_between_two_arrays_of_one_memory(tmp_path: Path) -> None:
    script = tmp_path / "smooth.py"
    script.write_text(OVERLAP)
    completed = run("-m", "simtbed", "check", script, code=1)
    assert (
        "10:9: race on global memory: out[32] is written here, and read by another thread as x[32]" in completed.stderr
    )


OVERLOAD = """
import sys

import numpy as np
from numba import cuda
from numba.cuda.extending import overload


def scaled(x):
    raise NotImplementedError


@overload(scaled)
def scaled_overload(x):
    return (lambda x: 2 * x) if sys.argv[1] == "2" else (lambda x: 3 * x)


@cuda.jit
def kernel(x):
    x[0] = scaled(x[0])


x = np.ones(1)
kernel[1, 1](x)
print(x[0])
"""


@pytest.mark.slow
def test_a_changed_overload_is_compiled_again(tmp_path: Path) -> None:
    script = tmp_path / "overload.py"
    script.write_text(OVERLOAD)
    for factor in ("2", "3"):
        completed = run("-m", "simtbed.numba", script, factor, environment={"SIMTBED_CACHE": str(tmp_path / "cache")})
        assert completed.stdout == f"{factor}.0\n"


MANY_ITEMS = f"""
from numba import cuda


@cuda.jit
def kernel(x):
    print({", ".join(["x"] * 33)})


kernel[1, 1](1)
"""


@pytest.mark.slow
def test_each_process_shows_the_warnings_of_a_kernel(tmp_path: Path) -> None:
    script = tmp_path / "items.py"
    script.write_text(MANY_ITEMS)
    for _ in range(2):
        completed = run("-m", "simtbed.numba", script, environment={"SIMTBED_CACHE": str(tmp_path / "cache")})
        assert "CUDA print() cannot print more than 32 items" in completed.stderr


WITHOUT_LIBRARIES = """
from cuda import pathfinder

searched = []


def search(name):
    searched.append(name)
    raise pathfinder.DynamicLibNotFoundError(name)


pathfinder.load_nvidia_dynamic_lib = search

import numpy as np
from numba import cuda


@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2


x = np.ones(4)
double[1, 4](x)
print(x.sum(), *sorted(set(searched)))
"""


@pytest.mark.slow
def test_a_machine_without_the_libraries_of_a_toolkit(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(WITHOUT_LIBRARIES)
    completed = run("-m", "simtbed.numba", script, environment={"SIMTBED_CACHE": str(tmp_path / "cache")})
    assert completed.stdout.startswith("8.0 cudart ")
