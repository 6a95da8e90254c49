"""Statements of the program under construction: registers, assignments, effects."""

from __future__ import annotations

import re

from ..ir import nodes as ir
from ..ir.building import BodyBuilder
from ..ir.names import temporary
from ..language.types import Scalar
from ..span import Span


class Emitter(BodyBuilder):
    """span: the source position of the instruction that is translated."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span
        self._registers = 0

    def register(self, stem: str, type: Scalar) -> ir.Reg:
        """Return a new register. stem: the name of a value; a dot ends it."""
        self._registers += 1
        words = re.sub(r"\W", "_", stem.split(".")[0])
        return ir.Reg(temporary(words if words[:1].isalpha() else f"v{words}", self._registers), type, self.span)

    def let(self, value: ir.Expr, stem: str = "") -> ir.Expr:
        """Assign an expression to a register, unless it is one or a constant."""
        if isinstance(value, ir.Reg | ir.Const | ir.Special):
            return value
        assert isinstance(value.type, Scalar)
        register = self.register(stem, value.type)
        self.assign(register, value)
        return register

    def assign(self, register: ir.Reg, value: ir.Expr) -> None:
        self.emit(ir.Let(register, value, self.span))

    def effect(self, effect: ir.Effect, stem: str = "", used: bool = True) -> ir.Expr:
        """Perform an effect. Return the register of its result; a result that is not used has none."""
        assert isinstance(effect.type, Scalar)
        register = self.register(stem, effect.type)
        self.emit(ir.Let(register if used else None, effect, self.span))
        return register
