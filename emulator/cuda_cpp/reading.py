"""Reading of libclang's cursors into the syntax tree, one function at a time."""

from __future__ import annotations

import re
from typing import Any

from . import clang
from .places import SourceText
from .reading_expressions import REFUSED, ExpressionReader
from .tree import Function, Kind, Node, Variable
from .types import ArrayType, CType, PointerType, RecordType

_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_UNROLL = re.compile(
    r"(?:#[ \t]*pragma[ \t]+unroll\b[ \t(]*(\w*)[ \t)]*[^\n]*\n(?:[ \t]*#line[^\n]*\n)?|_Pragma\(\"unroll\"\))\s*$"
)


class Reader(ExpressionReader):
    """Reads the functions of a text. Each function and variable is one object."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.functions: dict[Any, Function] = {}
        self.variables: dict[Any, Variable] = {}
        self._texts: dict[str, bytes] = {}
        kinds = self.kinds
        self._statements: dict[Any, Kind] = {
            kinds.WHILE_STMT: "while", kinds.DO_STMT: "do", kinds.BREAK_STMT: "break", kinds.CONTINUE_STMT: "continue",
            kinds.RETURN_STMT: "return", kinds.NULL_STMT: "empty", kinds.COMPOUND_STMT: "block",
        }  # fmt: skip

    def object_type(self, cursor: Any) -> CType:
        type = self.type(cursor)
        if type is None:
            raise self.refuse(cursor, f"{cursor.spelling} has no type of an object")
        return type

    # -------------------------------------------------------------- functions and variables
    def function(self, cursor: Any) -> Function:
        """Return a function; its body is read at the first call."""
        definition = cursor.get_definition() or cursor
        key = definition.mangled_name or definition.get_usr(), definition.hash
        if key in self.functions:
            return self.functions[key]
        kinds = self.kinds
        result = self.type(definition, definition.result_type)
        entry = Function(definition.spelling, self.span(definition), result, symbol=definition.mangled_name or "")
        self.functions[key] = entry
        entry.returns_reference = self.types.is_reference(definition.result_type)
        entry.constructor = definition.kind == kinds.CONSTRUCTOR
        entry.constant_method = entry.constructor or (
            definition.kind in (kinds.CXX_METHOD, kinds.CONVERSION_FUNCTION) and definition.is_const_method()
        )
        methods = (kinds.CXX_METHOD, kinds.CONSTRUCTOR, kinds.CONVERSION_FUNCTION)
        if definition.kind in methods and not definition.is_static_method():
            owner = self.type(definition, definition.semantic_parent.type)
            entry.owner = owner if isinstance(owner, RecordType) else None
        children = list(definition.get_children())
        body = next((child for child in children if child.kind == kinds.COMPOUND_STMT), None)
        entry.generated = definition.kind != kinds.FUNCTION_DECL and (body is None or definition.is_default_method())
        entry.parameters = [self.variable(child) for child in children if child.kind == kinds.PARM_DECL]
        if body is not None and not entry.generated:
            entry.members = self._members(children) if entry.constructor else []
            entry.body = self.statement(body)
        return entry

    def _members(self, children: list[Any]) -> list[tuple[str, Node]]:
        """Return the fields that a constructor initialises before its body."""
        entry = []
        for child, following in zip(children, [*children[1:], None], strict=True):
            if child.kind == self.kinds.MEMBER_REF and following is not None and following.kind.is_expression():
                entry.append((child.spelling, self.expression(following)))
        return entry

    def variable(self, cursor: Any) -> Variable:
        """Return a variable, read once."""
        kinds = self.kinds
        definition = cursor.get_definition() or cursor
        key = definition.get_usr(), definition.hash, definition.location.offset
        if key in self.variables:
            return self.variables[key]
        attributes = {child.kind for child in definition.get_children()}
        is_global = definition.semantic_parent.kind in (
            kinds.TRANSLATION_UNIT, kinds.NAMESPACE, kinds.STRUCT_DECL, kinds.CLASS_DECL, kinds.CLASS_TEMPLATE,
        )  # fmt: skip
        spelling = definition.spelling
        header = definition.location.file is not None and definition.location.file.name == clang.HEADER
        static = definition.storage_class.name == "STATIC"
        fixed, volatile = self.qualifiers(definition.type)
        place: Any = (
            "index" if header and spelling in _INDICES
            else "shared" if kinds.CUDASHARED_ATTR in attributes
            else "parameter" if definition.kind == kinds.PARM_DECL
            else "constant" if kinds.CUDACONSTANT_ATTR in attributes or ((is_global or static) and fixed)
            else "device" if is_global
            else "local"
        )  # fmt: skip
        if static and place == "local":
            raise self.refuse(definition, f"{spelling} is a static variable of a function: not supported")
        type = self.object_type(definition)
        if place == "parameter" and isinstance(type, ArrayType) and not self.types.is_reference(definition.type):
            type = PointerType(type.element)  # libclang shows an array in instances of templates
        entry = Variable(spelling, type, self.span(definition), place)
        self.variables[key] = entry
        entry.reference = self.types.is_reference(definition.type)
        entry.fixed, entry.volatile = fixed, volatile
        entry.symbol = (definition.mangled_name or "") if place in ("constant", "device") else ""
        entry.dynamic = place == "shared" and (
            definition.storage_class.name == "EXTERN"
            or (isinstance(entry.type, ArrayType) and entry.type.count is None)
        )
        initial = clang.initialiser(definition) if definition.kind == kinds.VAR_DECL and place != "index" else None
        entry.initial = None if initial is None else self.expression(initial)
        return entry

    # -------------------------------------------------------------- statements
    def statement(self, cursor: Any) -> Node:
        kinds, children = self.kinds, list(cursor.get_children())
        if cursor.kind.name in REFUSED:
            raise self.refuse(cursor, REFUSED[cursor.kind.name])
        if cursor.kind == kinds.DECL_STMT:
            return Node("block", self.span(cursor), children=tuple(self._declarations(children)))
        if cursor.kind == kinds.IF_STMT:
            return self._if(cursor, children)
        if cursor.kind == kinds.FOR_STMT:
            return self._for(cursor, children)
        if cursor.kind == kinds.SWITCH_STMT:
            return self._switch(cursor, children)
        if cursor.kind == kinds.WHILE_STMT and children[0].kind == kinds.VAR_DECL:
            raise self.refuse(
                children[0], "a declaration in the head of while is not supported: declare it before the loop"
            )
        if cursor.kind in self._statements:
            kind = self._statements[cursor.kind]
            pieces = tuple(self._child(child) for child in children)
            return Node(kind, self.span(cursor), children=pieces, unroll=self._unroll(cursor))
        if cursor.kind == kinds.UNEXPOSED_STMT:  # a statement with an attribute
            inner = [child for child in children if child.kind.is_statement() or child.kind.is_expression()]
            if len(inner) == 1:
                return self._child(inner[0])
        if cursor.kind.is_expression():
            return self.expression(cursor)
        raise self.refuse(cursor, f"this statement is not supported ({cursor.kind.name.lower()})")

    def _child(self, cursor: Any) -> Node:
        return self.expression(cursor) if cursor.kind.is_expression() else self.statement(cursor)

    def _declarations(self, children: list[Any]) -> list[Node]:
        declared = []
        for child in children:
            if child.kind == self.kinds.VAR_DECL:
                variable = self.variable(child)
                declared.append(Node("declare", self.span(child), variable.type, variable=variable))
        return declared

    def _if(self, cursor: Any, children: list[Any]) -> Node:
        before: list[Node] = []
        while children[0].kind in (self.kinds.VAR_DECL, self.kinds.DECL_STMT):
            first = children.pop(0)
            before += self._declarations([first] if first.kind == self.kinds.VAR_DECL else list(first.get_children()))
        condition = self.expression(children[0])
        value = condition.value if condition.kind == "constant" else None
        arms: list[Node | None] = [
            Node("empty", self.span(arm)) if value is not None and bool(value) == (number == 1) else self._child(arm)
            for number, arm in enumerate(children[1:3])
        ]
        node = Node("if", self.span(cursor), children=(condition, *arms, *[None] * (2 - len(arms))))
        return node if not before else Node("block", self.span(cursor), children=(*before, node))

    def _for(self, cursor: Any, children: list[Any]) -> Node:
        *head, body = children
        pieces = self._head(cursor, head)
        nodes = tuple(None if piece is None else self._child(piece) for piece in pieces)
        return Node("for", self.span(cursor), children=(*nodes, self._child(body)), unroll=self._unroll(cursor))

    def _head(self, cursor: Any, head: list[Any]) -> list[Any]:
        """Return initialiser, condition and step of `for`, None for missing ones: libclang lists only those present."""
        if len(head) == 3:
            return head
        data, position = self._text(cursor), cursor.extent.start.offset
        position, depth, ends = data.index(b"(", position) + 1, 0, list[int]()
        while depth >= 0 and len(ends) < 2:
            letter = data[position : position + 1]
            if letter == b";" and not depth:
                ends.append(position)
            depth += (letter in (b"(", b"[", b"{")) - (letter in (b")", b"]", b"}"))
            position += 1
        entry: list[Any] = [None, None, None]
        for piece in head:
            entry[sum(piece.extent.start.offset > end for end in ends)] = piece
        return entry

    def _switch(self, cursor: Any, children: list[Any]) -> Node:
        kinds = self.kinds
        cases: list[Node] = []
        statements: list[Node] = []

        def read(child: Any) -> None:
            if child.kind in (kinds.CASE_STMT, kinds.DEFAULT_STMT):
                *label, inner = child.get_children()
                value = clang.constant(label[0]) if label else None
                if label and not isinstance(value, int):
                    raise self.refuse(child, "the label of a case is not a constant")
                cases.append(Node("case", self.span(child), sign=str(len(statements)), value=value))
                read(inner)
            else:
                statements.append(self._child(child))

        if children[-1].kind != kinds.COMPOUND_STMT or len(children) != 2:
            raise self.refuse(cursor, "this form of switch is not supported")
        for child in children[-1].get_children():
            read(child)
        body = Node("block", self.span(cursor), children=tuple(statements))
        labels = Node("block", self.span(cursor), children=tuple(cases))
        return Node("switch", self.span(cursor), children=(self.expression(children[0]), labels, body))

    def _text(self, cursor: Any) -> bytes:
        name = cursor.location.file.name
        if name not in self._texts:
            self._texts[name] = self.source.content(name).encode()
        return self._texts[name]

    def _unroll(self, cursor: Any) -> bool:
        match = _UNROLL.search(self._text(cursor)[: cursor.extent.start.offset].decode(errors="replace"))
        return match is not None and match[1] != "1"
