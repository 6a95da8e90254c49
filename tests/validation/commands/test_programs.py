"""Programs under observation do what they do alone, and every launch is caught."""

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from simtbed import SimtbedError
from simtbed.kernels import FAMILIES
from simtbed.reports.cli import app
from simtbed.reports.targets import call as function_entry
from simtbed.reports.targets.running import run_target
from simtbed.reports.targets.target import Function, Module, Script, Shipped, find_target, is_program
from simtbed.runtime.recording import Recorder

from tests.reports.conftest import Simtbed
from tests.reports.sums import SUMS
from tests.reports.targets import programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ------------------------------------------------------------------ names
def test_names_of_targets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "sums", SUMS)
    write(folder, "run", "")
    write(folder, "tree", "")
    write(folder, "a.py", "")
    assert find_target("a.py", ["--n", "1"]) == Script(Path("a.py"), ("--n", "1"))
    assert find_target("run") == Script(Path("run"))
    assert find_target("./tree") == Script(Path("tree"))
    assert find_target("pack.age:function") == Function("pack.age:function")
    assert find_target("some/a.py:function") == Function("some/a.py:function")
    for name in ("tree", "sums/tree"):
        result = find_target(name)
        assert isinstance(result, Shipped) and (result.family.name, result.variant) == ("sums", "tree")
    (folder / "pack").mkdir()
    assert find_target("pack.age", ["--n", "1"]) == Module("pack.age", ("--n", "1"))
    assert [is_program(name) for name in ("pack.age", "missing.age", "pack", "run.json")] == [True, False, False, False]
    assert [is_program(name) for name in ("tree", "sums/tree", "nothing", "run", "missing.py", "a:b")] == [
        False, False, False, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "source", "message"),
    [
        (
            "missing.py",
            (),
            None,
            "missing.py: No such file; expected a script, package.module, module:function, file.py",
        ),
        ("run.json", (), None, "run.json is a saved run: only simtbed check and simtbed diff read one"),
        ("missing.age", (), None, "there is no variant 'missing.age'; expected one of"),
        ("nothing", (), None, "there is no variant 'nothing'; expected one of"),
        ("tree", ("--n",), None, "tree takes no arguments, got --n"),
        ("a:b", ("1",), None, "a:b is called without arguments, got 1"),
        ("a:b", (), Path("x"), "--input needs a shipped variant; write the arguments of a:b after its name"),
    ],
)
def test_other_names_are_refused(
    name: str, arguments: tuple[str, ...], source: Path | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAMILIES, "sums", SUMS)
    with pytest.raises(SimtbedError) as refused:
        find_target(name, arguments, source)
    assert message in str(refused.value)


# ------------------------------------------------------------------ programs
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_an_observed_program_behaves_as_alone(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(folder, "program_other.py", f"{programs.KERNELS}\nrun()\n")
    program, code, launches = programs.PROGRAMS[name]
    path = write(folder, "program.py", programs.text(program))
    if name in programs.MESSAGES:
        expected = ("", programs.MESSAGES[name])
    else:
        alone = subprocess.run(
            [sys.executable, path, "--device", "x"], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert alone.returncode == code, alone.stderr
        expected = (alone.stdout, alone.stderr)
    capfd.readouterr()
    result = run_target(find_target(str(path), ["--device", "x"]), partial(Recorder, engine="jit"))
    printed = capfd.readouterr()
    assert (result.code, len(result.run.launches)) == (code, launches)
    assert printed == expected
    assert {launch.engine for launch in result.run.launches} == {"jit"}


OTHERWISE = """
from simtbed.engines.numpy.engine import NumpyEngine
real = NumpyEngine.run
def otherwise(self, request):
    outcome = real(self, request)
    outcome.buffers["out"][37] = -1
    return outcome
NumpyEngine.run = otherwise
run()
"""


def test_engines_that_differ_are_found(folder: Path, simtbed: Simtbed) -> None:
    write(folder, "program.py", f"{programs.KERNELS}\n{OTHERWISE}")
    assert simtbed("verify", "--engine", "numpy", "-o", "report.txt", "program.py").code == 1
    report = (folder / "report.txt").read_text()
    assert "program.py: jit and numpy, to the bit" in report and "DIFFERS" in report
    assert "program.py:7:5: out[37] is -1 from numpy, 74 from jit" in report
    assert "written by block (1, 0, 0), thread (5, 0, 0) = warp 0 lane 5" in report
    name = re.search(
        r"simtbed debug --kernel (\w+) --launch 0 --block 1,0,0 --thread 5,0,0 --line 7 program.py$",
        report,
        re.MULTILINE,
    )
    assert name is not None
    stops = subprocess.run(
        [sys.executable, "-m", *name[0].split()], cwd=folder, input="quit\n", capture_output=True, text=True
    )
    assert f"program.py(7){name[1]}()" in stops.stdout


@pytest.mark.parametrize("command", ["check", "verify"])
def test_what_a_kernel_prints_is_shown_once(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """check and verify launch the kernel more than once."""
    text = "import simtbed as st\n@st.kernel\ndef speak(out: st.Global[st.i32]) -> None:\n    out[0] = st.thread.x\n"
    text += "    if st.thread.x == 1:\n        print('spoken')\n"
    write(folder, "program.py", text + "st.launch(speak, grid=1, block=32, args={'out': st.empty(1, 'i32')})\n")
    assert app.run([command, "-o", "report.txt", "program.py"]) == int(command == "check")
    assert capfd.readouterr().out.count("spoken") == 1


def test_a_fault_that_the_program_catches_is_a_finding(folder: Path, simtbed: Simtbed) -> None:
    write(folder, "program.py", programs.text(programs.CATCHES))
    assert simtbed("check", "--schedules", "2", "-o", "report.txt", "program.py").code == 1
    report = (folder / "report.txt").read_text()
    assert report.count("global write out of bounds: out[64]") == 1


def test_cuda_prints_a_kernel_once_per_constants_and_block(folder: Path, simtbed: Simtbed) -> None:
    write(folder, "program.py", f"{programs.KERNELS}\nrun(); run(); run(racy)\n")
    assert simtbed("cuda", "--json", "-o", "kernels.json", "program.py").code == 0
    kernels = json.loads((folder / "kernels.json").read_text())["kernels"]
    assert [kernel["kernel"] for kernel in kernels] == ["double_2", "racy"]
    assert all("__global__" in kernel["source"] for kernel in kernels)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_is_reported_on(number: signal.Signals, folder: Path) -> None:
    """The signals reach the program, and what it launched until then is in the report."""
    write(folder, "waits.py", f"{programs.KERNELS}\nrun()\nprint('ready', flush=True)\nimport time; time.sleep(60)\n")
    command = [sys.executable, "-m", "simtbed", "profile", "--json", "waits.py"]

    def heeding() -> None:  # the tests themselves may run in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heeding
    )
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    report, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert '"launches": 1' in report


@pytest.mark.parametrize("target", ["mine.py", "mine:bad"])
def test_a_finding_that_ends_a_program_is_reported_once(
    folder: Path, capfd: pytest.CaptureFixture[str], target: str
) -> None:
    """The report has the finding; the traceback of the program has the place where it ended."""
    last = "" if ":" in target else "bad()\n"
    write(folder, "mine.py", f"{programs.KERNELS}\ndef bad(): return run(past)\n{last}")
    assert app.run(["check", target]) == 1
    report, message = capfd.readouterr()
    assert message.startswith("Traceback") and "mine.py" in message and "reports/targets" not in message
    assert "FaultError: a finding, see the report\n" in message and "out of bounds" not in message
    assert report.count("out of bounds") == 1


@pytest.mark.parametrize(("command", "count"), [(("check", "--kernel", "past"), 2), (("profile",), 1)])
def test_a_traceback_has_a_finding_that_the_report_may_lack(
    command: tuple[str, ...], count: int, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(folder, "mine.py", f"{programs.KERNELS}\nrun(past)\n")
    app.run([*command, "mine.py"])
    assert "".join(capfd.readouterr()).count("out of bounds") == count


def test_a_function_of_a_file_imports_its_neighbours(folder: Path) -> None:
    write(folder, "mine.py", f"{programs.KERNELS}\nimport neighbour\n")
    write(folder, "neighbour.py", "")
    result = run_target(find_target(f"{folder}/mine.py:run"), Recorder)
    assert (result.code, len(result.run.launches)) == (0, 1)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine:double", "mine:double is a kernel: name a host function that launches it"),
        ("mine:nothing", "mine has no function nothing"),
        ("mine:number", "mine has no function number"),
        ("mine:wants", "mine:wants is called without arguments but requires n: name a function that passes them"),
        ("missing:run", "no module is called missing"),
        ("missing.py:run", "missing.py: No such file"),
    ],
)
def test_other_functions_are_refused(
    reference: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, "mine.py", f"{programs.KERNELS}\nnumber = 1\ndef wants(n, m=1): pass\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(function_entry, "show_without", lambda file: None)
    with pytest.raises(SystemExit) as refused:
        function_entry.call(reference)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert refused.value.code == 2 and message in capsys.readouterr().err


def test_a_missing_import_is_an_error_of_its_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "broken.py", "import not_there\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(function_entry, "show_without", lambda file: None)
    with pytest.raises(ModuleNotFoundError, match="No module named 'not_there'"):
        function_entry.call("broken:run")


# ------------------------------------------------------------------ the report
def test_the_report_is_separate_from_the_output(folder: Path, simtbed: Simtbed) -> None:
    write(folder, "racy.py", f"{programs.KERNELS}\nprint(run(racy).faults)\nrun()\n")
    result = simtbed("check", "-o", "report.txt", "racy.py")
    assert result.code == 1
    report = (folder / "report.txt").read_text()
    assert "race on global memory: out[0]" in report and "racy.py" in report
    assert "no launched kernel matches 'x*'" in simtbed("check", "--kernel", "x*", "racy.py").err
    write(folder, "still.py", "print(1)")
    assert simtbed("profile", "still.py").err.endswith("simtbed: still.py launches no kernel\n")


# ------------------------------------------------------------------ packages
MAIN = """
import sys
from . import kernels
from .below.values import VALUE

def launches():
    kernels.run()
    print("launched", __name__, VALUE)

if __name__ == "__main__":
    launches()
    print(sys.argv[1:])
"""


@pytest.fixture
def package(folder: Path) -> Path:
    """A package with relative imports, up and down, whose __init__ imports its module."""
    (folder / "pack" / "below").mkdir(parents=True)
    write(folder, "pack/__init__.py", "from .main import launches")
    write(folder, "pack/kernels.py", programs.KERNELS)
    write(folder, "pack/main.py", MAIN)
    write(folder, "pack/below/__init__.py", "")
    write(folder, "pack/below/values.py", "from .. import kernels\nVALUE = 7\ndef launches():\n    kernels.run()\n")
    return folder


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["pack.main", "--n", "3"], "launched __main__ 7\n['--n', '3']\n"),
        (["pack.main:launches"], "launched pack.main 7\n"),
        (["pack/below/values.py:launches"], ""),
    ],
)
def test_a_module_of_a_package_runs_as_such(
    words: list[str], printed: str, package: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["profile", "--json", "-o", "report.json", *words]) == 0
    assert capfd.readouterr().out == printed
    assert [row["kernel"] for row in json.loads((package / "report.json").read_text())["kernels"]] == ["double"]


def test_arguments_after_a_saved_run_are_read(package: Path, simtbed: Simtbed) -> None:
    """Otherwise the launch is lost without a report or a message."""
    assert simtbed("profile", "--save", "run.json", "pack.main").code == 0
    assert simtbed("check", "run.json", "--format", "sarif", "-o", "found.sarif").code == 0
    assert json.loads((package / "found.sarif").read_text())["version"] == "2.1.0"
    assert simtbed("check", "run.json", "--bogus").code == 2
    assert "takes no arguments, got more" in simtbed("check", "run.json", "more").refused()
