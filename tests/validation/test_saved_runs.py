"""A saved run with a wrong value at any place is refused with one line, or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.test_run_file import all_handled, good, trials

__all__ = ["good"]


def test_wrong_values_everywhere(good: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    all_handled(good, trials(good), tmp_path, capsys)
