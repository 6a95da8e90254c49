"""Collection of the statements of a body, in front ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import nodes as ir


class BodyBuilder:
    """body: the statements emitted so far."""

    def __init__(self) -> None:
        self.body: list[ir.Stmt] = []

    def emit(self, stmt: ir.Stmt) -> None:
        self.body.append(stmt)

    @contextmanager
    def block(self) -> Iterator[list[ir.Stmt]]:
        """Collect the statements emitted inside."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer
