"""`simtbed ci init`, and our own workflows: their jobs are interpreted, and the scripts in them run here."""

import shutil
from pathlib import Path

import pytest

from tests.compilers import HAS_NVCC
from tests.pages import ROOT
from tests.reports.conftest import Simtbed
from tests.workflows import Runner, load

ACTION = Path(".github/actions/simtbed/action.yml")
WORKFLOW = Path(".github/workflows/kernels.yml")
GITLAB = Path(".gitlab-ci.yml")
OUT = ("launches.json", "report.html", "run.json", "junit.xml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a kernel, its test and its budget; it wants one architecture, so that nvcc has little to do."""
    folder = tmp_path / "project"
    (folder / ".simtbed").mkdir(parents=True)
    text = (ROOT / "tests/testing/test_transpose.py").read_text()
    (folder / "test_transpose.py").write_text(text)
    budgets = (ROOT / ".simtbed/budgets.toml").read_text().replace("tests/testing/", "")
    (folder / ".simtbed/budgets.toml").write_text(budgets)
    (folder / "requirements.txt").write_text("simtbed\npytest\n")
    monkeypatch.chdir(folder)
    return folder


def one_architecture(path: Path) -> None:
    """Compile for one architecture, or for none where there is no nvcc."""
    text = path.read_text()
    if not HAS_NVCC:
        text = text.replace('--simtbed-compile "$ARCHS"', "").replace("--simtbed-compile all", "")
    path.write_text(
        text.replace("default: all", "default: sm_90").replace("--simtbed-compile all", "--simtbed-compile sm_90")
    )


@pytest.mark.parametrize(("service", "files"), [("github", (WORKFLOW, ACTION)), ("gitlab", (GITLAB,))])
def test_what_is_written(service: str, files: tuple[Path, ...], simtbed: Simtbed, project: Path) -> None:
    assert simtbed("ci", "init", service).out == "".join(f"{path}\n" for path in files)
    content = load(project / files[0])
    jobs = content["jobs"] if service == "github" else content
    assert set(jobs) - {"workflow"} == {"cpu", "gpu"}
    jobs = {name: jobs[name] for name in ("cpu", "gpu")}
    assert all(any(key.startswith("timeout") for key in job) for job in jobs.values())
    assert "exists already" in simtbed("ci", "init", service).refused()


def test_the_requirements_of_the_jobs_are_requested(simtbed: Simtbed, project: Path) -> None:
    assert simtbed("ci", "init", "github").err == ""
    (project / "requirements.txt").unlink()
    message = "simtbed: both jobs install requirements.txt, but there is no such file yet\n"
    assert simtbed("ci", "init", "gitlab").err == message


def test_a_workflow_that_runs_the_tests_already_is_named(simtbed: Simtbed, project: Path) -> None:
    other = project / ".github/workflows/test.yml"
    other.parent.mkdir(parents=True)
    other.write_text("on: push\n")
    assert simtbed("ci", "init", "github").err.startswith("simtbed: .github/workflows/test.yml runs the tests too")


def test_bad_use(simtbed: Simtbed) -> None:
    assert "github" in simtbed("ci", "init", "act").refused()
    assert "init" in simtbed("ci", "github", "init").refused()


def test_ours_is_what_is_written(simtbed: Simtbed, project: Path) -> None:
    simtbed("ci", "init", "github")
    assert (ROOT / ACTION).read_text() == (project / ACTION).read_text()
    ours = load(ROOT / ".github/workflows/ci.yml")["jobs"]
    theirs = load(project / WORKFLOW)["jobs"]
    for own, written in (("kernels", "cpu"), ("gpu", "gpu")):
        uses = [[step["uses"] for step in job["steps"] if "uses" in step] for job in (ours[own], theirs[written])]
        assert uses[0] == uses[1]
    assert all("timeout-minutes" in job for job in ours.values())
    assert ours["gpu"]["environment"] == theirs["gpu"]["environment"] == "gpu"
    checked_out = [job["steps"][0]["with"]["ref"] for job in (ours["gpu"], theirs["gpu"])]
    assert checked_out == ["${{ github.event.pull_request.head.sha || github.sha }}"] * 2
    runs = [step["run"] for step in ours["kernels"]["steps"] if "run" in step]
    assert runs == [
        "python -m simtbed check --budget .simtbed/variants.toml --compiled --known .simtbed/known.toml --compile all"
    ]


def test_our_own_job_fails_without_a_gpu(tmp_path: Path) -> None:
    """By the same action, and by the tests that a GPU is needed for."""
    workflow = ROOT / ".github/workflows/ci.yml"
    (tmp_path / ACTION).parent.mkdir(parents=True)
    shutil.copy(ROOT / ACTION, tmp_path / ACTION)
    runner = Runner(tmp_path, tmp_path / "store")
    (tmp_path / "store/artifact-simtbed").mkdir()
    assert not runner.job(workflow, "gpu")
    assert runner.failed() == ["Check that a GPU is visible"]
    last = load(workflow)["jobs"]["gpu"]["steps"][-1]["run"]
    assert last == ".venv/bin/python -m pytest -n auto --dist load --simtbed-engine cuda tests/gpu"
