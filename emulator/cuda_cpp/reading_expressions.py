"""Reading of libclang's expressions into the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CompileError, Diagnostic
from ..language.types import Scalar
from ..span import Span
from . import clang
from .places import SourceText
from .tree import Function, Node, Variable, is_place
from .types import ArrayType, CType, PointerType, Refusal, Types

REFUSED = {
    "GOTO_STMT": "goto is not supported: kernels have structured control flow",
    "INDIRECT_GOTO_STMT": "goto is not supported: kernels have structured control flow",
    "LABEL_STMT": "labels are not supported: kernels have structured control flow",
    "ASM_STMT": "inline PTX is not supported",
    "MS_ASM_STMT": "inline PTX is not supported",
    "CXX_NEW_EXPR": "new is not supported in kernels",
    "CXX_DELETE_EXPR": "delete is not supported in kernels",
    "CXX_TRY_STMT": "exceptions are not supported in kernels",
    "CXX_THROW_EXPR": "exceptions are not supported in kernels",
    "CXX_FOR_RANGE_STMT": "range-based for is not supported: write a loop with a counter",
    "CXX_DYNAMIC_CAST_EXPR": "dynamic_cast is not supported in kernels",
}
"""Messages for constructs of C++ without a counterpart, by the kind of their cursor."""


class ExpressionReader:
    """Reads expressions. The functions and variables that they name are read by the subclass."""

    function: Callable[[Any], Function]
    variable: Callable[[Any], Variable]
    statement: Callable[[Any], Node]

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.kinds = kinds = clang.cindex().CursorKind
        self.types = Types()
        self.casts = (
            kinds.CSTYLE_CAST_EXPR, kinds.CXX_STATIC_CAST_EXPR, kinds.CXX_FUNCTIONAL_CAST_EXPR,
            kinds.CXX_REINTERPRET_CAST_EXPR, kinds.CXX_CONST_CAST_EXPR,
        )  # fmt: skip
        self._readers: dict[Any, Callable[[Any], Node]] = {
            kinds.PAREN_EXPR: lambda cursor: self.expression(self._only(cursor)),
            kinds.UNEXPOSED_EXPR: self._unexposed,
            kinds.DECL_REF_EXPR: self._name,
            kinds.MEMBER_REF_EXPR: self._field,
            kinds.ARRAY_SUBSCRIPT_EXPR: self._subscript,
            kinds.UNARY_OPERATOR: self._unary,
            kinds.BINARY_OPERATOR: self._binary,
            kinds.COMPOUND_ASSIGNMENT_OPERATOR: self._binary,
            kinds.CONDITIONAL_OPERATOR: lambda cursor: self._node("conditional", cursor),
            kinds.INIT_LIST_EXPR: lambda cursor: self._node("list", cursor),
            kinds.CALL_EXPR: self._call,
            kinds.LAMBDA_EXPR: self._lambda,
            kinds.CXX_THIS_EXPR: lambda cursor: Node("this", self.span(cursor), self.type(cursor)),
            kinds.CXX_NULL_PTR_LITERAL_EXPR: lambda cursor: Node("null", self.span(cursor), PointerType(None)),
            kinds.GNU_NULL_EXPR: lambda cursor: Node("null", self.span(cursor), PointerType(None)),
            kinds.STRING_LITERAL: lambda cursor: Node(
                "text", self.span(cursor), value=ast.literal_eval(cursor.spelling)
            ),
        }
        self._readers |= dict.fromkeys(self.casts, self._cast)
        self._literals = (
            kinds.INTEGER_LITERAL, kinds.FLOATING_LITERAL, kinds.CHARACTER_LITERAL, kinds.CXX_BOOL_LITERAL_EXPR,
            kinds.CXX_UNARY_EXPR,
        )  # fmt: skip

    # -------------------------------------------------------------- positions, errors, types
    def span(self, cursor: Any) -> Span:
        return self.source.span(cursor.extent)

    def refuse(self, cursor: Any, message: str) -> CompileError:
        return CompileError([Diagnostic("compile", message, self.span(cursor))])

    def type(self, cursor: Any, type: Any = None) -> CType | None:
        try:
            return self.types.of(cursor.type if type is None else type)
        except Refusal as error:
            raise self.refuse(cursor, str(error)) from None

    def volatile(self, cursor: Any) -> bool:
        return bool(self.qualifiers(cursor.type)[1])

    def qualifiers(self, type: Any) -> tuple[bool, bool]:
        """Return whether an object, the elements of an array or the object of a reference are const, and volatile."""
        type = type.get_canonical()
        if type.kind in self.types.references:
            type = type.get_pointee().get_canonical()
        while type.kind in self.types.arrays:
            type = type.element_type.get_canonical()
        return type.is_const_qualified(), type.is_volatile_qualified()

    # -------------------------------------------------------------- expressions
    def expression(self, cursor: Any) -> Node:
        """Return the node of an expression. Raises CompileError for expressions without a counterpart."""
        if cursor.kind in self._literals:
            return self._constant(cursor)
        read = self._readers.get(cursor.kind)
        if read is None:
            message = REFUSED.get(cursor.kind.name, f"this expression is not supported ({cursor.kind.name.lower()})")
            raise self.refuse(cursor, message)
        return read(cursor)

    def _constant(self, cursor: Any) -> Node:
        value, type = clang.constant(cursor), self.type(cursor)
        if value is None or not isinstance(type, Scalar):
            raise self.refuse(cursor, "the value of this expression is not known")
        return Node("constant", self.span(cursor), type, value=value)

    def _folded(self, cursor: Any, node: Node) -> Node:
        """Return the constant that an expression of constants is, if the compiler can compute it."""
        if isinstance(node.type, Scalar) and node.children and all(child.kind == "constant" for child in node.present):
            value = clang.constant(cursor)
            if value is not None:
                return Node("constant", node.span, node.type, value=value)
        return node

    def _operands(self, cursor: Any) -> list[Any]:
        return [child for child in cursor.get_children() if child.kind.is_expression()]

    def _only(self, cursor: Any) -> Any:
        operands = self._operands(cursor)
        if len(operands) != 1:
            raise self.refuse(cursor, "this expression is not supported")
        return operands[0]

    def _node(self, kind: Any, cursor: Any, sign: str = "") -> Node:
        children = tuple(self.expression(child) for child in self._operands(cursor))
        return Node(kind, self.span(cursor), self.type(cursor), children, sign, volatile=self.volatile(cursor))

    def _unexposed(self, cursor: Any) -> Node:
        operands = self._operands(cursor)
        if not operands:
            if isinstance(self.type(cursor), Scalar) and clang.constant(cursor) is not None:
                return self._constant(cursor)
            return Node("zero", self.span(cursor), self.type(cursor))
        if len(operands) > 1:
            raise self.refuse(cursor, "this expression is not supported")
        if self.types.is_base(cursor.type, operands[0].type):
            return self.expression(operands[0])  # fields of both have one name and one place
        return self._converted(cursor, self.expression(operands[0]))

    def _converted(self, cursor: Any, operand: Node) -> Node:
        """Return an operand converted to the type of a cursor; the operand itself if the types are equal."""
        type = self.type(cursor)
        if type == operand.type or operand.kind in ("lambda", "text"):
            return operand
        if isinstance(type, ArrayType) and operand.type == PointerType(type.element):
            return operand  # a parameter that is declared as an array, in an instance of a template
        sign = "decay" if isinstance(operand.type, ArrayType) and isinstance(type, PointerType) else ""
        return self._folded(cursor, Node("cast", self.span(cursor), type, (operand,), sign))

    def _cast(self, cursor: Any) -> Node:
        *_, inner = self._operands(cursor)
        if cursor.type.get_canonical().kind == self.types.kinds.VOID:
            return Node("cast", self.span(cursor), None, (self.expression(inner),))
        while inner.kind == self.kinds.PAREN_EXPR:
            inner = self._only(inner)
        operand, type = self.expression(inner), self.type(cursor)
        # A conversion to a value reads its operand, which libclang shows as another node; a cast to a reference does not.
        if (
            inner.kind != self.kinds.UNEXPOSED_EXPR
            and is_place(operand)
            and type != operand.type
            and inner.kind not in self.casts
        ):
            return Node("view", self.span(cursor), type, (operand,), volatile=self.volatile(cursor))
        return self._converted(cursor, operand)

    def _name(self, cursor: Any) -> Node:
        declared, kinds = cursor.referenced, self.kinds
        if declared is None and isinstance(self.type(cursor), Scalar):  # a parameter of a template
            return self._constant(cursor)
        if declared is None or declared.kind in (kinds.FUNCTION_DECL, kinds.CXX_METHOD):
            raise self.refuse(cursor, f"{cursor.spelling} as a value: function pointers are not supported")
        is_variable = declared.kind in (kinds.VAR_DECL, kinds.PARM_DECL)
        may_be_constant = not is_variable or self.qualifiers(declared.type)[0]
        if may_be_constant and isinstance(self.type(cursor), Scalar) and clang.constant(cursor) is not None:
            return self._constant(cursor)
        if not is_variable:
            raise self.refuse(cursor, f"{cursor.spelling} is not supported as a value")
        variable = self.variable(declared)
        return Node("name", self.span(cursor), variable.type, variable=variable, volatile=variable.volatile)

    def _field(self, cursor: Any) -> Node:
        declared, operands = cursor.referenced, self._operands(cursor)
        if declared is None or declared.kind != self.kinds.FIELD_DECL:
            return self._name(cursor)
        owner = self.expression(operands[0]) if operands else None
        pointer = owner is None or isinstance(owner.type, PointerType)
        sign = "->" if pointer else "."  # of an omitted owner, which is `this`
        node = Node("field", self.span(cursor), self.type(cursor), (owner,), sign, volatile=self.volatile(cursor))
        node.value = cursor.spelling
        return node

    def _subscript(self, cursor: Any) -> Node:
        array, index = (self.expression(child) for child in self._operands(cursor))
        if isinstance(array.type, Scalar):
            array, index = index, array  # 3[x]
        return Node("index", self.span(cursor), self.type(cursor), (array, index), volatile=self.volatile(cursor))

    def _unary(self, cursor: Any) -> Node:
        sign = clang.unary_operator(cursor)
        if not sign:
            raise self.refuse(cursor, "this operator is not supported")
        inner = self._only(cursor)
        if sign == "&" and inner.kind == self.kinds.DECL_REF_EXPR and inner.referenced.kind == self.kinds.FUNCTION_DECL:
            raise self.refuse(cursor, f"the address of {inner.spelling}: function pointers are not supported")
        return self._folded(cursor, self._node("unary", cursor, sign))

    def _binary(self, cursor: Any) -> Node:
        sign = clang.binary_operator(cursor)
        if sign in ("", ".*", "->*", "<=>"):
            raise self.refuse(cursor, "this operator is not supported")
        if cursor.kind == self.kinds.COMPOUND_ASSIGNMENT_OPERATOR or sign == "=":
            return self._node("assign", cursor, sign.removesuffix("="))
        return self._folded(cursor, self._node("binary", cursor, sign))

    # -------------------------------------------------------------- calls
    def _call(self, cursor: Any) -> Node:
        called, kinds = cursor.referenced, self.kinds
        arguments = list(cursor.get_arguments())
        if called is None or called.kind in (kinds.VAR_DECL, kinds.PARM_DECL, kinds.FIELD_DECL):
            name = cursor.spelling or self.source.text_of(cursor).partition("(")[0].strip()
            raise self.refuse(
                cursor, f"{name} is not a function that is known here: function pointers and textures are not supported"
            )
        if called.kind == kinds.CONSTRUCTOR:
            return self._construction(cursor, called, arguments)
        owner = None
        is_method = called.kind in (kinds.CXX_METHOD, kinds.CONVERSION_FUNCTION)
        if is_method and not called.is_static_method():
            first = next(iter(cursor.get_children()))
            named = first.referenced if first.kind == kinds.MEMBER_REF_EXPR else None
            member = named is not None and named.kind not in (kinds.FIELD_DECL, kinds.VAR_DECL)
            owners = self._operands(first) if member else arguments[:1]
            arguments = arguments if member else arguments[1:]
            owner = self.expression(owners[0]) if owners else None
            if "lambda" in called.semantic_parent.type.spelling:
                return self._lambda_call(cursor, called, owner, arguments)
        function = self.function(called)
        children = (owner, *self._arguments(cursor, called, arguments))
        return Node("call", self.span(cursor), self.type(cursor), children, function=function)

    def _lambda_call(self, cursor: Any, called: Any, owner: Node | None, arguments: Sequence[Any]) -> Node:
        children = (owner, *self._arguments(cursor, called, arguments))
        return Node("call", self.span(cursor), self.type(cursor), children, "lambda")

    def _arguments(self, cursor: Any, called: Any, inputs: Sequence[Any]) -> list[Node]:
        """Return the arguments of a call; for those that are not written, the defaults of the parameters."""
        parameters, nodes = list(called.get_arguments()), []
        for number, argument in enumerate(inputs):
            written = argument.kind != self.kinds.UNEXPOSED_EXPR or self._operands(argument)
            if not written and clang.constant(argument) is None and number < len(parameters):
                defaults = self._operands(parameters[number])
                if not defaults:
                    raise self.refuse(cursor, f"no value for {parameters[number].spelling}")
                argument = defaults[0]
            nodes.append(self.expression(argument))
        return nodes

    def _construction(self, cursor: Any, called: Any, arguments: Sequence[Any]) -> Node:
        type = self.type(cursor)
        function = self.function(called)
        if function.generated or isinstance(type, ArrayType):
            if len(arguments) == 1 and not isinstance(type, ArrayType):
                return self.expression(arguments[0])  # a copy
            return Node("zero", self.span(cursor), type)
        children = (None, *self._arguments(cursor, called, arguments))
        return Node("call", self.span(cursor), type, children, "construct", function=function)

    def _lambda(self, cursor: Any) -> Node:
        kinds, children = self.kinds, list(cursor.get_children())
        function = Function("lambda", self.span(cursor), None)
        function.parameters = [self.variable(child) for child in children if child.kind == kinds.PARM_DECL]
        capture = self.source.text_of(cursor).partition("]")[0]
        function.copies = "=" in capture or any(
            name.strip(" [") and not name.strip(" [").startswith("&") for name in capture.split(",")
        )
        body = next(child for child in children if child.kind == kinds.COMPOUND_STMT)
        function.body = self.statement(body)
        return Node("lambda", self.span(cursor), children=(), function=function)
