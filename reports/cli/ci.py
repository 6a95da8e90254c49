"""`simtbed ci`: workflows for GitHub Actions and GitLab CI."""

from enum import StrEnum
from importlib.resources import files as resources
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.escaping import printable
from simtbed.kernels import files

from ..printing import print_message, print_text
from .parameters import Argument, command


class Action(StrEnum):
    """Actions on a workflow."""

    init = "init"


class Service(StrEnum):
    """Continuous integration services."""

    github = "github"
    gitlab = "gitlab"


FILES = {
    Service.github: {
        "github.yml.in": Path(".github/workflows/kernels.yml"),
        "action.yml.in": Path(".github/actions/simtbed/action.yml"),
    },
    Service.gitlab: {"gitlab.yml.in": Path(".gitlab-ci.yml")},
}
"""Templates and their paths in a project, by service."""
REQUIREMENTS = "requirements.txt"
NEW = Path(".github/workflows/test.yml")
"""The workflow written by `simtbed new`."""


@command
def ci(
    action: Annotated[Action, Argument(metavar="ACTION", help="init: write the workflow.")],
    service: Annotated[Service, Argument(metavar="SERVICE", help="github or gitlab.")],
) -> int:
    """Write a workflow with the tests on an emulator and on a GPU.

    The workflow and its action are written to the paths that GitHub or GitLab reads. They need a file requirements.txt.
    The GPU job runs if the variable HAS_GPU_RUNNER is true.

    \b
    simtbed ci init github
    """
    paths = FILES[service]
    if existing := [path for path in paths.values() if path.exists()]:
        raise SimtbedError(f"{existing[0]}: exists already")
    for template, path in paths.items():
        text = resources("simtbed.reports.project").joinpath(template).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, [text])
        print_text(printable(path))
    if service is Service.github and NEW.exists():
        print_message(f"simtbed: {NEW} runs the tests too; the job cpu includes all of its steps")
    if not Path(REQUIREMENTS).exists():
        print_message(f"simtbed: both jobs install {REQUIREMENTS}, but there is no such file yet")
    return 0
