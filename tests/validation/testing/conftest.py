"""Runs of pytest within pytest, as in tests/testing."""

from tests.testing.conftest import not_in_ci

__all__ = ["not_in_ci"]
