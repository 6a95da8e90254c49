"""The import hook: a program with a child process, the refusal of CUDASIM and of other versions."""

import os
import subprocess
import venv
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from simtbed import numba_hook
from simtbed.numba import packages
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
    assert "doubling.py:9:9: global read out of bounds: x[8], but x has 8 elements" in completed.stdout
    assert "simtbed: numba emulated: kernels run on an emulator" in completed.stderr
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


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        ({}, ""),
        ({"numba-cuda": "0.28.2", "numba": "0.62.1", "llvmlite": "0.45.1"}, ""),
        ({"numba-cuda": "0.27.0"}, "numba-cuda 0.27.0 is not supported: .* numba-cuda 0.28 to 0.30.4; pip install 'numba-cuda==0.30.4"),
        ({"numba-cuda": "0.31.0"}, "numba-cuda 0.31.0 is not supported"),
        ({"numba-cuda": "0.30.3"}, "numba 0.68.1 is not supported: numba-cuda 0.30.3 runs .* numba 0.62 to 0.65"),
        ({"numpy": "2.5.5"}, "numpy 2.5.5 is not supported: numba-cuda 0.30.4 runs .* numpy 2 to 2.4; pip install 'numpy==2.4"),
        ({"numba-cuda": None}, "numba-cuda is not installed: pip install 'simtbed"),
    ],
)  # fmt: skip
def test_versions_are_refused_by_name(
    installed: dict[str, str | None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"numba-cuda": "0.30.4", "numba": "0.68.1", "llvmlite": "0.50.0", "numpy": "2.4.6", **installed}

    def version(name: str) -> str:
        own = versions[name]
        if own is None:
            raise PackageNotFoundError(name)
        return own

    monkeypatch.setattr(packages, "version", version)
    with pytest.raises(st.UnavailableError, match=message) if message else nullcontext():
        NUMBA_CUDA.require_versions()


def test_extras_allow_the_tested_versions() -> None:
    for package in packages.PACKAGES.values():
        allowed = {
            canonicalize_name(own.name): own.specifier
            for own in map(Requirement, requires("simtbed") or ())
            if own.marker is None or own.marker.evaluate({"extra": package.extra})
        }
        for name in package.tested[0]:
            limits = [limit for row in package.tested for limit in row[name]]
            assert limits[0] <= limits[1] and all(own in allowed[name] for own in limits), name  # type: ignore[index]


def test_words_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for word, value in {"1": "1", "yes": "1", "": "0", "no": "0", "OFF": "0", "auto": "auto", "maybe": "maybe"}.items():
        monkeypatch.setenv(VARIABLE, word)
        assert numba_hook.setting() == value
    with pytest.raises(st.UnavailableError, match="SIMTBED_NUMBA=maybe: expected 1, auto or 0"):
        numba_hook._is_emulated("numba.cuda")


def test_the_start_of_python_loads_the_hook_alone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("own = True\n")
    show = (
        "import sys; print([name for name in ('simtbed', 'simtbed.numba_hook', 'numpy') if name in sys.modules], "
        "sys.modules['sitecustomize'].own, [folder for folder in sys.path if 'startup' in folder])"
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    request(environment, numba_hook.WITHOUT_GPU)
    assert run("-c", show, environment=environment).stdout == "['simtbed.numba_hook'] True []\n"


def test_a_python_without_simtbed_keeps_its_own_start(tmp_path: Path) -> None:
    venv.create(tmp_path / "other", with_pip=False)
    (tmp_path / "sitecustomize.py").write_text("own = True\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    request(environment)

    def start(shown: str) -> str:
        command = [str(tmp_path / "other" / "bin" / "python"), "-c", f"import sys; print({shown})"]
        completed = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert not completed.stderr
        return completed.stdout

    assert start("sys.modules['sitecustomize'].own, 'simtbed.numba_hook' in sys.modules") == "True False\n"
    (tmp_path / "sitecustomize.py").unlink()
    assert start("sys.modules['sitecustomize'].__file__").startswith(STARTUP)


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
        "10:9: race on global memory: out[32] is written here, and read by another thread as x[32]" in completed.stdout
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
