"""Scopes of the source that contain an instruction. They determine which code belongs to the body of a loop."""

from collections.abc import Iterable, Iterator

from .module import Instruction, Module

Scope = tuple[int, int]
"""The number of a block of the source, and of the call whose inlined code it is, -1 outside inlined code."""


class SourceScopes:
    """The scopes of a module's positions. Line numbers do not determine them: a text has macros, included files and `#line`."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[int, tuple[Scope, ...]] = {}

    def around(self, position: int) -> tuple[Scope, ...]:
        """Return the scopes around a position, the innermost first; none for an unknown position."""
        if position not in self._known:
            self._known[position] = tuple(self._scopes(position))
        return self._known[position]

    def _scopes(self, position: int) -> Iterator[Scope]:
        while (own := self._module.positions.get(position)) is not None:
            yield from ((scope, own.inlined) for scope in self._module.debug.scopes(own.scope))
            position = own.inlined

    def of_body(self, loop: int, instructions: Iterable[Instruction]) -> frozenset[Scope]:
        """Return the scopes of the body of a loop.

        loop: the number of its node, which names the position of the statement. instructions: those that are repeated. The scopes are
        those inside the scope of the statement that hold a repeated instruction.
        """
        places = [number for number in self._module.debug.items(f"!{loop}") if number in self._module.positions]
        outer = self.around(places[0])[:1] if places and places[0] is not None else ()
        result: set[Scope] = set()
        for instruction in instructions:
            scopes = self.around(instruction.position)
            if outer and outer[0] in scopes:
                result.update(scopes[: scopes.index(outer[0])])
        return frozenset(result)
