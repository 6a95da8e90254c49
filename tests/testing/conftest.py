"""Runs of pytest within pytest."""

import pytest


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as on a developer's machine, also in CI."""
    monkeypatch.delenv("CI", raising=False)
