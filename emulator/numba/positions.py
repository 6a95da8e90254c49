"""Source positions of Numba's bytecode: a line number of Numba's IR has the columns of its expression."""

import linecache
from types import CodeType

from ..span import Span


class PositionLine(int):
    """A line number with the number of its position in `Positions.spans`."""

    number: int = 0


class Positions:
    """Positions by number. LLVM's debug information has these numbers in place of lines.

    codes: of the functions whose bytecode was read.
    """

    def __init__(self) -> None:
        self.spans: dict[int, Span] = {}
        self._numbers: dict[Span, int] = {}
        self.codes: set[CodeType] = set()

    def number(self, span: Span) -> int:
        """Return the number of a position, counted from 1."""
        number = self._numbers.setdefault(span, len(self._numbers) + 1)
        self.spans[number] = span
        return number

    def line(self, span: Span) -> PositionLine:
        """Return the line of a position."""
        line = PositionLine(span.line)
        line.number = self.number(span)
        return line

    def of_code(self, code: CodeType) -> list[PositionLine | None]:
        """Return the line of each code unit of two bytes; None for a unit without a position."""
        self.codes.add(code)
        return [self._of_unit(code.co_filename, *place) for place in code.co_positions()]

    def _of_unit(
        self, file: str, line: int | None, end_line: int | None, column: int | None, end_column: int | None
    ) -> PositionLine | None:
        if line is None:
            return None
        end = end_line or line
        first, last = _characters(file, line, column), _characters(file, end, end_column)
        return self.line(Span(file, line, first + 1, end, last + 1))


def _characters(file: str, line: int, column: int | None) -> int:
    """Return a column in characters. column: in bytes of UTF-8."""
    if not column:
        return 0
    text = linecache.getline(file, line)
    return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
