"""Interpreter for the workflows of GitHub (expressions, conditions, local actions, scripts) and for GitLab's jobs and caches.

Scripts run. Actions of third parties are simulated: caches and artifacts are folders; Python and pip are those of this
process.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
case "$1 $2" in
"-m pip") echo "$@" >> "{log}"; exit 0 ;;
"-m venv") mkdir -p "$3/bin"; ln -sf "{own}" "$3/bin/python"; exit 0 ;;
esac
if [ -n "$PLAYS_GPU" ]; then
    export PYTEST_ADDOPTS="-p tests.testing.played_gpu" PYTHONPATH="{root}"
fi
exec "{real}" "$@"
"""
"""Python that installs nothing. If PLAYS_GPU is set, launches on the engine cuda are simulated."""
NVIDIA_SMI = "#!/bin/sh\necho 'GPU 0: a GPU'\n"


def load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


@dataclass
class Step:
    """Evaluated step. code: its exit code; None if it was skipped."""

    name: str
    code: int | None
    output: str = ""


@dataclass
class Runner:
    """Runs jobs in a folder. store: caches and artifacts, shared by the jobs. event: "push" or "pull_request"."""

    folder: Path
    store: Path
    event: str = "push"
    sha: str = "1" * 40
    base: str = "0" * 40
    gpu: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        bin = self.store / "bin"
        bin.mkdir(parents=True, exist_ok=True)
        python = PYTHON.format(log=self.store / "pip", own=bin / "python", real=sys.executable, root=ROOT)
        scripts = {"python": python, "python3": python, **({"nvidia-smi": NVIDIA_SMI} if self.gpu else {})}
        for name, text in scripts.items():
            (bin / name).write_text(text)
            (bin / name).chmod(0o755)
        if not self.gpu:
            (bin / "nvidia-smi").unlink(missing_ok=True)

    # ------------------------------------------------------------------ jobs
    def job(self, workflow: Path, name: str) -> bool:
        """Run a job; return whether it passed."""
        self.steps = []
        return self._all(load(workflow)["jobs"][name]["steps"], {}, True)

    def failed(self) -> list[str]:
        return [step.name for step in self.steps if step.code]

    def output(self, name: str) -> str:
        return next(step.output for step in self.steps if step.name == name)

    def gitlab(self, path: Path, name: str) -> bool:
        """Run a job of GitLab's: `script` in one shell, then `after_script`, even if `script` fails. Return whether it passed."""
        self.steps = []
        job = load(path)[name]
        predefined = {
            "CI_PROJECT_DIR": str(self.folder), "CI_COMMIT_SHA": self.sha,
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": self.base if self.event == "pull_request" else "",
        }  # fmt: skip

        def text(value: str) -> str:
            return re.sub(r"\$(\w+)", lambda match: predefined[match[1]], value)

        own = {**predefined, **{key: text(value) for key, value in job.get("variables", {}).items()}}
        caches = [(self.store / text(self._key(entry["key"])), entry) for entry in job.get("cache", [])]
        for stored, cache in caches:
            if cache.get("policy") != "push" and stored.is_dir():
                shutil.copytree(stored, self.folder, dirs_exist_ok=True)
        for what in ("script", "after_script"):
            code, output = self._shell("\n".join(job.get(what, [])), own)
            self.steps.append(Step(what, code, output))
        passed = not self.steps[0].code
        for stored, cache in caches:
            for folder in cache["paths"] if passed and cache.get("policy") != "pull" else ():
                if (self.folder / folder).is_dir():
                    shutil.copytree(self.folder / folder, stored / folder, dirs_exist_ok=True)
        return passed

    def _key(self, key: str | dict[str, Any]) -> str:
        return key if isinstance(key, str) else f"{key['prefix']}-{self._digest(*key['files'])}"

    def _all(self, steps: list[dict[str, Any]], inputs: Mapping[str, str], passed: bool) -> bool:
        for step in steps:
            name = step.get("name") or step.get("uses") or step["run"].splitlines()[0]
            condition = step.get("if", "success()")
            if not (passed or "always()" in condition) or not self._value(condition, inputs):
                self.steps.append(Step(name, None))
                continue
            passed = self._step(name, step, inputs) and passed
        return passed

    def _step(self, name: str, step: dict[str, Any], inputs: Mapping[str, str]) -> bool:
        values = {key: self._text(text, inputs) for key, text in step.get("with", {}).items()}
        if "run" in step:
            own = {key: self._text(text, inputs) for key, text in step.get("env", {}).items()}
            code, output = self._shell(self._text(step["run"], inputs), own)
            self.steps.append(Step(name, code, output))
            return not code
        if step["uses"].startswith("./"):
            action = load(self.folder / step["uses"] / "action.yml")
            assert set(values) <= set(action["inputs"]), (
                f"{step['uses']} has no input {set(values) - set(action['inputs'])}"
            )
            defaults = {key: declared.get("default", "") for key, declared in action["inputs"].items()}
            return self._all(action["runs"]["steps"], {**defaults, **values}, True)
        code = self._played(step["uses"].partition("@")[0], values)
        self.steps.append(Step(name, code))
        return not code

    def _played(self, action: str, inputs: Mapping[str, str]) -> int:
        """Simulate an action of a third party; return its exit code."""
        folder = self.folder / inputs.get("path", "")
        stored = self.store / f"artifact-{inputs['name']}" if "name" in inputs else self.store / inputs.get("key", "")
        match action:
            case "actions/checkout" | "actions/setup-python" | "actions/cache":
                return 0
            case "actions/cache/restore" | "actions/download-artifact":
                if stored.is_dir():
                    shutil.copytree(stored, folder, dirs_exist_ok=True)
                return int(action == "actions/download-artifact" and not stored.is_dir())
            case "actions/cache/save" | "actions/upload-artifact":
                if not folder.is_dir() or not any(folder.iterdir()):
                    return 1
                shutil.copytree(folder, stored, dirs_exist_ok=True)
                return 0
            case "github/codeql-action/upload-sarif":
                shutil.copy(self.folder / inputs["sarif_file"], self.store / "uploaded.sarif")
                return 0
        raise AssertionError(f"no implementation of {action}")

    # ------------------------------------------------------------------ scripts and expressions
    def _shell(self, script: str, own: Mapping[str, str]) -> tuple[int, str]:
        (self.store / "temp").mkdir(exist_ok=True)
        environment = {
            **os.environ, **self.environment, **own, "CI": "true", "CUDA_VISIBLE_DEVICES": "",
            "PATH": f"{self.store / 'bin'}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(self.store / "summary"),
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        process = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        return process.returncode, process.stdout + process.stderr

    def _text(self, text: str, inputs: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(self._value(match[1], inputs) or ""), text)

    def _value(self, expression: str, inputs: Mapping[str, str]) -> Any:
        """Evaluate an expression: comparisons, and, or, contexts, `always`, `success` and `hashFiles`."""
        contexts = {
            **{f"inputs.{name}": value for name, value in inputs.items()},
            "github.event_name": self.event, "github.sha": self.sha, "runner.temp": str(self.store / "temp"),
            "runner.os": "Linux", "runner.arch": "X64", "matrix.python": "3.12", "vars.HAS_GPU_RUNNER": "true",
            "github.event.pull_request.base.sha": self.base if self.event == "pull_request" else "",
            "github.event.pull_request.head.sha": self.sha if self.event == "pull_request" else "",
            "github.event.pull_request.head.repo.fork": False,
        }  # fmt: skip

        def python(token: re.Match[str]) -> str:
            word = token[0]
            if word[0] == "'" or word in ("always", "success", "hashFiles"):
                return word
            if word in ("true", "false"):
                return word.capitalize()
            assert word in contexts, f"{expression}: nothing is called {word}"
            return repr(contexts[word])

        text = re.sub(r"'[^']*'|[A-Za-z_][\w.]*", python, expression.strip())
        text = text.replace("&&", " and ").replace("||", " or ")
        functions = {"always": lambda: True, "success": lambda: True, "hashFiles": self._digest, "__builtins__": {}}
        return eval(text, functions)

    def _digest(self, *patterns: str) -> str:
        names = sorted(str(path) for pattern in patterns for path in self.folder.glob(pattern) if path.is_file())
        return str(abs(hash(tuple(names)))) if names else ""
