"""The command line as a fixture, as in tests/reports."""

from tests.reports.conftest import simtbed

__all__ = ["simtbed"]
