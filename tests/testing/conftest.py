"""Runs of pytest within pytest."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs are a developer's, wherever they run."""
    monkeypatch.delenv("CI", raising=False)
