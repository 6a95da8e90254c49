"""Statements of the program under construction: registers, assignments, effects."""

import re

from ..ir import nodes as ir
from ..ir.building import BodyBuilder
from ..ir.names import temporary, value
from ..language.types import Results, Scalar, Vector
from ..span import Span

VARIABLE = "variable."
"""The beginning of the name of a value that is assigned to a variable of the source."""


class Emitter(BodyBuilder):
    """span: the source position of the instruction that is translated."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span
        self._registers = 0

    def register(self, stem: str, type: Scalar) -> ir.Reg:
        """Return a new register. stem: the name of a value; a dot ends it. After VARIABLE it is the name of the user's variable."""
        self._registers += 1
        named = stem.startswith(VARIABLE)
        words = re.sub(r"\W", "_", stem.removeprefix(VARIABLE).split(".")[0])
        name = value if named and words else temporary
        return ir.Reg(name(words if named else _word(words) or "v", self._registers), type, self.span)

    def vector(self, stem: str, type: Vector) -> ir.Reg:
        """Return a new register with the components of a vector."""
        self._registers += 1
        return ir.Reg(temporary(_word(stem) or "vector", self._registers), type, self.span)

    def results(self, stem: str, type: Results) -> ir.Reg:
        """Return a new register with several values."""
        self._registers += 1
        return ir.Reg(temporary(_word(stem) or "results", self._registers), type, self.span)  # type: ignore[arg-type]

    def let(self, value: ir.Expr, stem: str = "", site: int = -1) -> ir.Expr:
        """Assign an expression to a register, unless it is one, a constant, or a special value of no variable of the source."""
        is_variable = stem.startswith(VARIABLE)
        if isinstance(value, ir.Reg | ir.Const) or (isinstance(value, ir.Special) and not is_variable):
            return value
        assert isinstance(value.type, Scalar)
        register = self.register(stem, value.type)
        self.assign(register, value, site)
        return register

    def assign(self, register: ir.Reg, value: ir.Expr, site: int = -1) -> None:
        self.emit(ir.Let(register, value, self.span, site))

    def effect(self, effect: ir.Effect, stem: str = "", used: bool = True) -> ir.Expr:
        """Perform an effect. Return the register of its result; a result that is not used has none."""
        assert isinstance(effect.type, Scalar)
        register = self.register(stem, effect.type)
        self.emit(ir.Let(register if used else None, effect, self.span))
        return register


def _word(stem: str) -> str:
    """Return a name with letters, digits and underscores that begins with a letter; "" for an empty one."""
    word = re.sub(r"\W", "_", stem)
    return word if not word or word[0].isalpha() else f"v{word}"
