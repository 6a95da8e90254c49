"""The jobs that `simtbed ci init` writes, interpreted: on GitHub with a GPU, on GitLab, and interrupted."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tests.reports.conftest import Simtbed
from tests.reports.test_ci_command import ACTION, GITLAB, OUT, WORKFLOW, one_architecture, project
from tests.workflows import Runner

__all__ = ["project"]


def test_the_job_on_a_gpu(simtbed: Simtbed, project: Path, tmp_path: Path) -> None:
    """Without a GPU it fails; with one that answers the same it passes; with another answer or other tests it fails."""
    simtbed("ci", "init", "github")
    one_architecture(project / ACTION)
    store = tmp_path / "store"
    early = Runner(project, store, gpu=True)
    assert not early.job(project / WORKFLOW, "gpu") and early.failed() == ["actions/download-artifact@v4"]
    assert Runner(project, store).job(project / WORKFLOW, "cpu")
    none = Runner(project, store)
    assert not none.job(project / WORKFLOW, "gpu") and none.failed() == ["Check that a GPU is visible"]
    runner = Runner(project, store, gpu=True)
    assert not runner.job(project / WORKFLOW, "gpu") and runner.failed() == ["Run the same tests on the GPU"]
    played = Runner(project, store, gpu=True, environment={"PLAYS_GPU": "yes"})
    assert played.job(project / WORKFLOW, "gpu"), [step.output for step in played.steps]
    assert "the bits of 1 of 1 launches compared" in played.output("Run the same tests on the GPU")
    test = project / "test_transpose.py"
    text = test.read_text()
    test.write_text(text.replace("np.arange(1024", "2 * np.arange(1024"))
    assert not played.job(project / WORKFLOW, "gpu")
    assert "not as in simtbed-out/launches.json" in played.output("Run the same tests on the GPU")
    test.write_text(text.replace("def test_transpose", "def test_other"))
    assert not played.job(project / WORKFLOW, "gpu")


def test_an_interrupted_run_fails_each_job(simtbed: Simtbed, project: Path, tmp_path: Path) -> None:
    """A program can end Python with the exit code 0."""
    for service in ("github", "gitlab"):
        simtbed("ci", "init", service)
    for path in (ACTION, GITLAB):
        one_architecture(project / path)
    runner = Runner(project, tmp_path / "store", gpu=True, environment={"PLAYS_GPU": "yes"})
    assert runner.job(project / WORKFLOW, "cpu")
    (project / "test_zzz.py").write_text("import os\ndef test_ends():\n    os._exit(0)\n")
    assert not runner.job(project / WORKFLOW, "gpu") and runner.failed() == ["Run the same tests on the GPU"]
    assert not runner.gitlab(project / GITLAB, "gpu")
    assert not runner.job(project / WORKFLOW, "cpu") and runner.failed()[0] == "Run the tests on the emulator"
    assert not runner.gitlab(project / GITLAB, "cpu")


def test_the_jobs_of_gitlab_run(simtbed: Simtbed, project: Path, tmp_path: Path) -> None:
    simtbed("ci", "init", "gitlab")
    one_architecture(project / GITLAB)
    store = tmp_path / "store"
    runner = Runner(project, store)
    assert runner.gitlab(project / GITLAB, "cpu"), runner.steps
    assert all((project / "simtbed-out" / name).is_file() for name in (*OUT, "quality.json"))
    assert json.loads((project / "simtbed-out/quality.json").read_text()) == []
    assert not (project / "simtbed-out/base-and-head.md").exists()
    assert not runner.gitlab(project / GITLAB, "gpu")
    played = Runner(project, store, gpu=True, environment={"PLAYS_GPU": "yes"})
    assert played.gitlab(project / GITLAB, "gpu"), played.steps
    # a merge request on it: the table of base and head
    test = project / "test_transpose.py"
    test.write_text(test.read_text().replace("32, 33", "32, 32"))
    shutil.rmtree(project / "simtbed-run")
    changed = Runner(project, store, "pull_request", sha="2" * 40, base="1" * 40)
    assert not changed.gitlab(project / GITLAB, "cpu")
    assert "shared_load_conflicts: 0 in the baseline, now 992" in changed.output("script")
    table = (project / "simtbed-out/base-and-head.md").read_text()
    assert "| transpose |  | shared\\_load\\_conflicts | 0 | 992 | from 0 worse |" in table
    assert table in changed.output("after_script")
    (finding,) = json.loads((project / "simtbed-out/quality.json").read_text())
    assert finding["check_name"] == "budget" and finding["location"]["path"] == "test_transpose.py"
    assert not any((store / f"simtbed-run-{'2' * 40}").glob("*")), "a failed run is no base"


def test_the_jobs_of_github_run(simtbed: Simtbed, project: Path, tmp_path: Path) -> None:
    simtbed("ci", "init", "github")
    one_architecture(project / ACTION)
    store = tmp_path / "store"
    runner = Runner(project, store, sha="1" * 40)
    assert runner.job(project / WORKFLOW, "cpu"), [step.output for step in runner.steps]
    assert all((store / "artifact-simtbed" / name).is_file() for name in OUT)
    Sarif.model_validate_json((store / "uploaded.sarif").read_text())
    assert (store / "pip").read_text().splitlines()[:2] == [
        "-m pip install -r requirements.txt",
        "-m pip install simtbed[nvcc]",
    ]
    # a pull request on it: the table of base and head
    test = project / "test_transpose.py"
    test.write_text(test.read_text().replace("32, 33", "32, 32"))
    shutil.rmtree(project / "simtbed-base")
    changed = Runner(project, store, "pull_request", sha="2" * 40, base="1" * 40)
    assert not changed.job(project / WORKFLOW, "cpu")
    assert changed.failed() == ["Run the tests on the emulator"]
    assert "shared_load_conflicts: 0 in the baseline, now 992" in changed.output("Run the tests on the emulator")
    assert changed.output("Show the findings").startswith("::error file=test_transpose.py,line=14,")
    summary = (store / "summary").read_text()
    assert "| transpose |  | shared\\_load\\_conflicts | 0 | 992 | from 0 worse |" in summary
    (result,) = json.loads((store / "uploaded.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "budget"
    failures = ElementTree.fromstring((store / "artifact-simtbed/junit.xml").read_text()).find("testsuite")
    assert failures is not None and failures.get("failures") == "1"
