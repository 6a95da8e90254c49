"""The error of a program that failed by itself."""

from __future__ import annotations


class TargetFailed(Exception):
    """A program that ended with an exit code before it launched anything, and has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
