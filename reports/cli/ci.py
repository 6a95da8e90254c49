"""`simtbed ci`: a workflow for the service that runs a project's tests."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files as resources
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import files

from .parameters import Argument, command


class Service(StrEnum):
    """Who runs the tests."""

    github = "github"
    gitlab = "gitlab"


FILES = {Service.github: Path(".github/workflows/kernels.yml"), Service.gitlab: Path(".gitlab-ci.yml")}
"""Where each service looks for its workflow."""


@command
def ci(service: Annotated[Service, Argument(metavar="SERVICE", help="github or gitlab.")]) -> int:
    """A workflow: the tests on an emulator and on a GPU.

    It is written to where GitHub or GitLab looks for it. It needs a file
    requirements.txt. The GPU's job runs where the variable HAS_GPU_RUNNER is true.

    \b
    simtbed ci github
    """
    path = FILES[service]
    if path.exists():
        raise SimtbedError(f"{path}: is there already")
    text = resources("simtbed.reports.project").joinpath(f"{service.value}.yml.in").read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, [text])
    print(path)
    return 0
