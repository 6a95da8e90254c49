"""All example scripts run under profile, check and verify without a change."""

from pathlib import Path

import pytest

from tests.reports.conftest import Simtbed
from tests.reports.targets.test_scripts import SCRIPTS, assert_launches


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("command", ["profile", "check", "verify"])
def test_a_script(command: str, script: Path, simtbed: Simtbed, tmp_path: Path) -> None:
    assert_launches(command, script, simtbed, tmp_path)
