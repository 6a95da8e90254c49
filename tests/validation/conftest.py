"""The command line as a fixture."""

from tests.hardware.conftest import simtbed

__all__ = ["simtbed"]
