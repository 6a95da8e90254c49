"""Fixture to run command lines, as for the tests of reports."""

from tests.reports.conftest import simtbed

__all__ = ["simtbed"]
