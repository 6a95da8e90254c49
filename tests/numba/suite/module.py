"""One test module of numba-cuda in this process: `python -m simtbed.numba -m tests.numba.suite.module MODULE RESULTS [--all]`.

RESULTS receives one JSON object a line: for each test when it starts and when it ends. `--all` runs the listed tests too.
"""

import json
import sys
import unittest
from collections.abc import Iterator
from typing import Any, TextIO

import pytest

from .listing import PREFIX, Reason, reasons


class StreamedResult(unittest.TestResult):
    """Results that a file receives at once: a process that crashes leaves the results of its earlier tests."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream
        self.outcome = ""
        self.details: list[str] = []

    def write(self, test: str, outcome: str, details: str = "") -> None:
        """Write one result."""
        self.stream.write(
            json.dumps({"test": test.removeprefix(PREFIX), "outcome": outcome, "details": details}) + "\n"
        )
        self.stream.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.outcome, self.details = "", []
        self.write(test.id(), "started")

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.write(test.id(), self.outcome or "passed", "\n".join(self.details))

    def _record(self, test: Any, outcome: str, details: str) -> None:
        if not isinstance(test, unittest.TestCase):  # the fixture of a class or module, outside of all tests
            self.write(test.id(), outcome, details)
        elif self.outcome != "failed":
            self.outcome = outcome
            self.details.append(details)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        if issubclass(err[0], pytest.skip.Exception):  # by pytest.importorskip
            self.addSkip(test, str(err[1]))
            return
        super().addError(test, err)
        self._record(test, "failed", self.errors[-1][1])

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._record(test, "failed", self.failures[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._record(test, "failed", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._record(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._record(test, "expected failure", "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._record(test, "failed", "unexpected success")


def tests_of(module: str) -> Iterator[unittest.TestCase]:
    """Yield the tests of a module in their order. module: its name without `PREFIX`."""

    def flattened(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from flattened(test)
            else:
                yield test

    yield from flattened(unittest.defaultTestLoader.loadTestsFromName(PREFIX + module))


def reason_of(test: str, listed: list[Reason]) -> Reason | None:
    """Return the reason to skip a test in this environment."""
    return next((reason for reason in listed if reason.covers(test) and reason.applies()), None)


def main(module: str, results: str, *options: str) -> None:
    """Run the tests of a module, except the listed ones."""
    listed = [] if "--all" in options else reasons()
    with open(results, "w") as stream:
        result = StreamedResult(stream)
        suite = unittest.TestSuite()
        try:
            tests = list(tests_of(module))
        except pytest.skip.Exception as skip:  # of the whole module, by pytest.importorskip
            result.write(module, "skipped", str(skip))
            tests = []
        for test in tests:
            reason = reason_of(test.id().removeprefix(PREFIX), listed)
            if reason is None:
                suite.addTest(test)
            else:
                result.write(test.id(), "listed", reason.text)
        suite.run(result)
        result.write(module, "end")


if __name__ == "__main__":
    main(*sys.argv[1:])
