"""`simtbed ci`: workflows for the services that run a project's tests."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.resources import files as resources
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import files

from .parameters import Argument, command


class Action(StrEnum):
    """What is done with a workflow."""

    init = "init"


class Service(StrEnum):
    """Who runs the tests."""

    github = "github"
    gitlab = "gitlab"


FILES = {
    Service.github: {
        "github.yml.in": Path(".github/workflows/kernels.yml"),
        "action.yml.in": Path(".github/actions/simtbed/action.yml"),
    },
    Service.gitlab: {"gitlab.yml.in": Path(".gitlab-ci.yml")},
}
"""The templates of each service, and where it looks for them."""
REQUIREMENTS = "requirements.txt"
NEW = Path(".github/workflows/test.yml")
"""The workflow that `simtbed new` writes."""


@command
def ci(
    action: Annotated[Action, Argument(metavar="ACTION", help="init: write the workflow.")],
    service: Annotated[Service, Argument(metavar="SERVICE", help="github or gitlab.")],
) -> int:
    """A workflow: the tests on an emulator and on a GPU.

    It is written to where GitHub or GitLab looks for it, with its action. It needs a file
    requirements.txt. The GPU's job runs where the variable HAS_GPU_RUNNER is true.

    \b
    simtbed ci init github
    """
    paths = FILES[service]
    if there := [path for path in paths.values() if path.exists()]:
        raise SimtbedError(f"{there[0]}: is there already")
    for template, path in paths.items():
        text = resources("simtbed.reports.project").joinpath(template).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, [text])
        print(path)
    if service is Service.github and NEW.exists():
        print(f"simtbed: {NEW} runs the tests too; the job cpu does all that it does and more", file=sys.stderr)
    if not Path(REQUIREMENTS).exists():
        print(f"simtbed: both jobs install what {REQUIREMENTS} lists, and there is none here yet", file=sys.stderr)
    return 0
