"""A saved run, a record or a file of a project with a wrong value at any place is refused with one line, or read."""

from pathlib import Path
from typing import Any

import pytest

from tests.hardware.test_record_schemas import FORMATS, check_refused
from tests.profiler.test_run_file import all_handled, good, trials

__all__ = ["good"]


def test_wrong_values_everywhere(good: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    all_handled(good, trials(good), tmp_path, capsys)


@pytest.mark.parametrize("name", FORMATS)
def test_wrong_values_of_files_everywhere(name: str, tmp_path: Path) -> None:
    check_refused(name, trials(FORMATS[name][1]), tmp_path / "file")
