"""Packages of the wheel: emulator/ is `simtbed` itself, kernels, oracles and reports install under it. The rest is in pyproject.toml."""

from setuptools import find_packages, setup

siblings = find_packages(
    include=[f"{folder}{inside}" for folder in ("kernels", "oracles", "reports") for inside in ("", ".*")]
)
setup(packages=["simtbed", *(f"simtbed.{name}" for name in (*find_packages("emulator"), *siblings))])
