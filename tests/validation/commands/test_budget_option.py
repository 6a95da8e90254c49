"""`--budget`: kernels of targets held to the baselines of a file, by command, with the plugin's rules and exit codes."""

import json
import tomllib
from pathlib import Path

import pytest
import tomli_w
from simtbed.profiler.events import RULES
from simtbed.reports import launchers
from simtbed.reports.cli import verify

from tests.compilers import needs_nvcc
from tests.reports.conftest import Simtbed

KERNEL = """import numpy as np
import simtbed as st
@st.kernel
def copy(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    i = st.thread.x
    out[i] = x[2 * i]
@st.kernel
def twice(out: st.Global[st.f32]) -> None:
    out[st.thread.x] = out[st.thread.x] + out[st.thread.x]
for n in (128, 256):
    out = st.launch(copy, grid=1, block=32, args=dict(x=np.zeros(n, np.float32), out=st.zeros(64, st.f32))).out
st.launch(twice, grid=1, block=64, args=dict(out=out))
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script, where CI is not set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "steps.py").write_text(KERNEL)
    return tmp_path


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "steps.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_baseline_is_written_held_and_lost(simtbed: Simtbed, project: Path) -> None:
    missing = simtbed("profile", "--budget", "kernels.toml", "steps.py")
    assert missing.refused() == "simtbed: kernels.toml: No such file; --update-budget writes it\n"
    created = simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    assert created.code == 0 and "wrote the baselines of 2 kernels to kernels.toml" in created.out
    baselines = tomllib.loads((project / "kernels.toml").read_text())["steps.py"]
    assert set(baselines) == {"copy", "twice"} and baselines["copy"]["figures"]["launches"] == 2
    for command in ("profile", "check", "verify"):
        within = simtbed(command, "--budget", "kernels.toml", "steps.py")
        assert within.code == 0 and "compared 2 kernels with kernels.toml" in within.out, command
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    for command in ("profile", "check", "verify"):
        over = simtbed(command, "--budget", "kernels.toml", "steps.py")
        assert over.code == 1 and "global_load_sectors: 16 in the baseline, now 32 (+100 %)" in over.out, command
        assert "steps.py:6:5: copy of steps.py is over its budget" in over.out
        assert "out[i] = x[4 * i]" in over.out and "was: out[i] = x[2 * i]" in over.out


def test_new_and_removed_kernels(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    edit(project, "twice", "thrice")
    result = simtbed("profile", "--budget", "kernels.toml", "steps.py")
    assert result.code == 1 and "thrice of steps.py has no baseline in kernels.toml" in result.out
    assert "not used any more: twice of steps.py" in result.out
    assert simtbed("profile", "--budget", "kernels.toml", "--kernel", "copy", "steps.py").code == 0
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    assert set(tomllib.loads((project / "kernels.toml").read_text())["steps.py"]) == {"copy", "thrice"}


def test_a_file_of_totals_has_no_lines(simtbed: Simtbed, project: Path) -> None:
    """Without `lines` in the file, a finding is at the kernel, and --update-budget writes no lines."""
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    path = project / "kernels.toml"
    totals = tomllib.loads(path.read_text())
    for baseline in totals["steps.py"].values():
        del baseline["lines"]
    path.write_text(tomli_w.dumps(totals))
    assert simtbed("check", "--budget", "kernels.toml", "steps.py").code == 0
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    over = simtbed("check", "--budget", "kernels.toml", "steps.py")
    assert over.code == 1 and "global_load_sectors: 16 in the baseline, now 32 (+100 %)" in over.out
    assert "steps.py:4:1: copy of steps.py is over its budget" in over.out and "was:" not in over.out
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    written = tomllib.loads(path.read_text())["steps.py"]
    assert written["copy"]["figures"]["global_load_sectors"] == 32 and "lines" not in written["copy"]


def test_limits_and_json(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    for limits, code, remarks in ((("--hard", "200"), 0, 1), (("--soft", "200"), 0, 0), (("--hard", "50"), 1, 0)):
        result = simtbed("check", "--budget", "kernels.toml", *limits, "--json", "-o", "report", "steps.py")
        report = json.loads((project / "report").read_text())["budget"]
        assert (result.code, len(report["remarks"]), len(report["over"])) == (code, remarks, code)


def test_findings_for_services(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    result = simtbed("check", "--budget", "kernels.toml", "--format", "github", "-o", "report", "steps.py")
    assert result.code == 1
    assert (project / "report").read_text().startswith("::error file=steps.py,line=6,endLine=6,col=5,title=budget::")
    simtbed("check", "--budget", "kernels.toml", "--hard", "200", "--format", "github", "-o", "report", "steps.py")
    assert (project / "report").read_text().startswith("::warning file=steps.py,line=6,")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--update-budget",), "need the file of --budget"),
        (("--hard", "5"), "need the file of --budget"),
        (("--budget", "steps.py"), "steps.py: "),
        (("--budget", "kernels.toml", "-o", "kernels.toml"), "are the same file"),
    ],
)
def test_bad_use(simtbed: Simtbed, project: Path, options: tuple[str, ...], reason: str) -> None:
    (project / "kernels.toml").write_text("")
    assert reason in simtbed("profile", *options, "steps.py").refused()


@pytest.mark.parametrize(
    "text", ["x = 1", '["a".b]\ndevice = "H200"\nrules = 1\nfigures = { n = "many" }\nlines = []', "[[", "a = [{}]"]
)
def test_files_that_hold_no_baselines(simtbed: Simtbed, project: Path, text: str) -> None:
    (project / "kernels.toml").write_text(text)
    assert simtbed("profile", "--budget", "kernels.toml", "steps.py").refused().startswith("simtbed: kernels.toml: ")


def test_nothing_is_written_where_ci_is_set(simtbed: Simtbed, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert "if CI is set" in simtbed("check", "--budget", "b.toml", "--update-budget", "steps.py").refused()
    assert not (project / "b.toml").exists()


def test_another_version_of_the_rules_is_named_as_the_reason(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "kernels.toml", "--update-budget", "steps.py")
    text = (project / "kernels.toml").read_text()
    other = text.replace(f"rules = {RULES}", f"rules = {RULES - 1}")
    old = other.replace("global_load_sectors = 16", "global_load_sectors = 17")
    (project / "kernels.toml").write_text(old)
    result = simtbed("profile", "--budget", "kernels.toml", "steps.py")
    assert (
        result.code == 1
        and f"the baseline is of counting rules {RULES - 1}, this is of counting rules {RULES}" in result.out
    )
    assert "no line of the kernel is another one: that is the reason" in result.out
    (project / "kernels.toml").write_text(other)
    assert simtbed("profile", "--budget", "kernels.toml", "steps.py").code == 0


@needs_nvcc
def test_compiler_counters_are_compared_only_on_request(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "kernels.toml", "--compiled", "--update-budget", "steps.py")
    text = (project / "kernels.toml").read_text()
    baseline = tomllib.loads(text)["steps.py"]["copy"]
    assert baseline["figures"]["registers"] > 0 and "release" in baseline["compiler"]
    (project / "kernels.toml").write_text(text.replace("registers = ", "registers = 1"))
    assert simtbed("profile", "--budget", "kernels.toml", "steps.py").code == 0
    over = simtbed("check", "--budget", "kernels.toml", "--compiled", "steps.py")
    assert over.code == 1 and "registers: 1" in over.out and "steps.py:" in over.out


def test_a_missing_compiler_could_not_run(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simtbed.engines.cuda.nvcc.find_tool", lambda name: None)
    result = simtbed("check", "--budget", "b.toml", "--update-budget", "--compiled", "--json", "steps.py")
    assert result.code == 3 and "nvcc is not found" in result.err
    assert simtbed("check", "--compile", "sm_90", "steps.py").code == 3


@needs_nvcc
def test_spills_and_refusals_of_the_compiler_are_findings(simtbed: Simtbed, project: Path) -> None:
    assert "knows no architecture 'sm_1'" in simtbed("check", "--compile", "sm_1", "steps.py").refused()
    result = simtbed("check", "--compile", "sm_80,sm_90", "steps.py")
    assert result.code == 0 and "4 kernels compiled, each for one of sm_80, sm_90" in result.out
    (project / "steps.py").write_text(
        "import numpy as np\nimport simtbed as st\n@st.kernel\ndef wide(x: st.Global[st.f32], y: st.Global[st.f32]) -> None:\n"
        "    kept = st.registers(st.f32, 96)\n    s = st.f32(1)\n    for k in st.unroll(range(96)):\n"
        "        kept[k] = x[st.thread.x + k]\n        s = s * kept[k] + 1.0\n    for k in st.unroll(range(96)):\n"
        "        s = s * s + kept[k]\n    y[st.thread.x] = s\n"
        "st.launch(wide, grid=1, block=1024, args=dict(x=np.zeros(2000, np.float32), y=st.empty(1024, st.f32)))\n"
    )
    result = simtbed("check", "--compile", "sm_90", "steps.py")
    assert result.code == 1 and "steps.py:4" in result.out and "wide spills registers on sm_90" in result.out
    pins = project / ".simtbed" / "known.toml"
    requested = ("check", "--compile", "sm_90", "--known", ".simtbed/known.toml", "steps.py")
    assert ".simtbed/known.toml" in simtbed(*requested).refused()
    pins.parent.mkdir(exist_ok=True)
    line = "def wide(x: st.Global[st.f32], y: st.Global[st.f32]) -> None:"
    pins.write_text(f'[[known]]\nkind = "spill"\nfile = "steps.py"\nline = "{line}"\nreason = "it is wide"\n')
    result = simtbed(*requested)
    assert result.code == 0 and "wide, remarks:" in result.out and "wide spills registers on sm_90" in result.out
    pins.write_text(pins.read_text().replace("steps.py", "other.py"))
    assert simtbed(*requested).code == 1


def test_the_variants_of_a_family(simtbed: Simtbed, project: Path) -> None:
    """One of its variants is faulty; here the budgets matter."""
    within = ("check", "--family", "sums", "--json", "--budget", "sums.toml")
    simtbed(*within, "--update-budget")
    text = (project / "sums.toml").read_text()
    assert all(name.startswith("sums/") for name in tomllib.loads(text))
    assert json.loads(simtbed(*within).out)["budget"]["over"] == []
    (project / "sums.toml").write_text(text + "\n" + text.replace('"sums/', '"sums/gone-'))
    over = json.loads(simtbed(*within).out)["budget"]["over"]
    assert {one["message"].partition(":")[0] for one in over} == {"not used any more"}
    assert all(one["file"] == "sums.toml" and one["line"] > 1 for one in over)


def test_verify_holds_variants_too(simtbed: Simtbed, project: Path) -> None:
    only = ("--engine", "numpy", "tree")
    simtbed("check", "--budget", "sums.toml", "--update-budget", "tree")
    within = simtbed("verify", "--budget", "sums.toml", *only)
    assert within.code == 0 and "compared 1 kernel with sums.toml" in within.out
    text = (project / "sums.toml").read_text()
    (project / "sums.toml").write_text(text.replace("\nbarriers = ", "\nbarriers = 1"))
    over = simtbed("verify", "--budget", "sums.toml", "--json", *only)
    assert over.code == 1 and "barriers: 1" in json.loads(over.out)["budget"]["over"][0]["notes"][0]
    (project / "sums.toml").write_text(text.replace("sums/tree", "sums/half-tree"))
    assert "tree of sums/tree has no baseline" in simtbed("verify", "--budget", "sums.toml", *only).out


def test_nothing_is_held_on_a_gpu(simtbed: Simtbed, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launchers, verify):
        monkeypatch.setattr(module, "why_unavailable", lambda engine: None)
    (project / "sums.toml").write_text("")
    assert "a GPU has no counters" in simtbed("verify", "--engine", "cuda", "--budget", "sums.toml", "tree").refused()


def test_a_diff_holds_its_second_run(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--budget", "b.toml", "--update-budget", "--save", "base.json", "steps.py")
    assert simtbed("diff", "--budget", "b.toml", "base.json", "base.json").code == 0
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    simtbed("profile", "--save", "head.json", "steps.py")
    result = simtbed("diff", "--budget", "b.toml", "base.json", "head.json")
    assert result.code == 1 and "copy of steps.py is over its budget" in result.out


def test_a_table_for_a_pull_request(simtbed: Simtbed, project: Path) -> None:
    simtbed("profile", "--save", "base.json", "steps.py")
    edit(project, "x[2 * i]\n", "x[4 * i]\n")
    edit(project, "out[st.thread.x] + out[st.thread.x]", "out[st.thread.x]")
    simtbed("profile", "--save", "head.json", "steps.py")
    lines = simtbed("diff", "--format", "markdown", "base.json", "head.json").out.splitlines()
    assert lines[:2] == ["| kernel | line | counter | base.json | head.json | change |", "|---|---|---|--:|--:|---|"]
    assert lines[2] == "| copy |  | global\\_load\\_sectors | 16 | 32 | +100.0 % worse |"
    words = [line.removesuffix(" |").rpartition(" ")[2] for line in lines if "|  |" in line]
    assert words == sorted(words, key=["worse", "%", "better"].index) and words[-1] == "better"
    assert "are equal to those of base.json" in simtbed("diff", "--format", "markdown", "base.json", "base.json").out
