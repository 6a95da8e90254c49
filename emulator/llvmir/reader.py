"""Tokens, types and operands of LLVM IR text."""

import re
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .module import Aggregate, Assembly, Constant, Global, Local, Number, Operand, Text, Undefined, Zero
from .types import (
    FloatType,
    IntType,
    OtherType,
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    component,
)

_TOKEN = re.compile(
    r"""\s+|;.*|(?P<text>c?"[^"]*")|(?P<local>%"[^"]*"|%[-\w.$]+)|(?P<global>@"[^"]*"|@[-\w.$]+)|(?P<metadata>![\w.]*)"""
    r"""|(?P<number>-?\d+\.\d+(?:e[+-]?\d+)?|[sfu]?0x[HKLMR]?[0-9A-Fa-f]+|-?\d+(?![\w.$-]))|(?P<word>[-+]?[A-Za-z_][\w.$]*)"""
    r"""|(?P<group>\#\d+)|(?P<mark>\.\.\.|[\[\](){}<>,=*:|])"""
)
_FLOAT_TYPES = ("half", "bfloat", "float", "double", "fp128", "x86_fp80", "ppc_fp128")
_OTHER_TYPES = ("void", "label", "metadata", "token")
_EXPRESSIONS = (
    "getelementptr", "addrspacecast", "bitcast", "inttoptr", "ptrtoint", "ptrtoaddr", "trunc", "add", "sub", "mul", "xor",
)  # fmt: skip
_NOT_FINITE = ("nan", "inf", "+inf", "-inf", "+qnan", "-qnan")
_VALUE_WORDS = {
    "true", "false", "null", "none", "undef", "poison", "zeroinitializer", "asm", "splat", *_NOT_FINITE,
    *_EXPRESSIONS,
}  # fmt: skip


def unquoted(token: str) -> str:
    """Return the name in a token such as %x, @"a b" or "text"."""
    name = token.lstrip("%@")
    return name[1:-1] if name.startswith('"') else name


def content(token: str) -> bytes:
    """Return the bytes of a quoted text with escapes such as \\0A."""
    inner = token[2:-1] if token.startswith("c") else token[1:-1]
    return re.sub(
        rb"\\([0-9A-Fa-f]{2}|\\)",
        lambda match: b"\\" if match[1] == b"\\" else bytes([int(match[1], 16)]),
        inner.encode("latin-1", "surrogateescape") if inner.isascii() else inner.encode(),
    )


NO_TYPES: Mapping[str, str] = MappingProxyType({})


class Reader:
    """A cursor over the tokens of a text."""

    def __init__(self, text: str, named_types: Mapping[str, str] = NO_TYPES) -> None:
        """named_types: the text of each type with a name, by name without the %."""
        self.text, self.named_types = text, named_types
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None:
                raise UnsupportedError(f"the text {text[end : end + 40]!r} is not LLVM IR of a supported version")
            if match.lastgroup is not None:
                self.tokens.append((match.lastgroup, match.group()))
            end = match.end()
        self.at = 0
        self.alignments: list[int] = []  # of attributes, in bytes

    def unexpected(self) -> UnsupportedError:
        rest = " ".join(token for _, token in self.tokens[self.at : self.at + 6])
        return UnsupportedError(f"the text {rest!r} in {self.text.strip()[:120]!r} is not supported")

    # -------------------------------------------------------------- tokens
    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise self.unexpected()
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.unexpected()

    def skip_group(self) -> None:
        """Skip a parenthesis and its content."""
        depth = 0
        while True:
            token = self.next()
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth == 0:
                return

    def flags(self) -> frozenset[str]:
        """Skip flags and attributes; return their names."""
        names = set()
        while self.kind() in ("word", "group") and not self.starts_type() and self.peek() not in _VALUE_WORDS:
            name = self.next()
            names.add(name)
            if self.peek() == "(":
                self.skip_group()
            elif name == "align" and self.kind() == "number":
                self.alignments.append(int(self.next()))
        return frozenset(names)

    def separated(self, end: str) -> Iterator[None]:
        """Yield before each item of a list in commas, up to its end."""
        while not self.accept(end):
            yield
            self.accept(",")

    # -------------------------------------------------------------- types
    def starts_type(self) -> bool:
        token = self.peek()
        return bool(re.fullmatch(r"i\d+", token)) or token in ("ptr", *_FLOAT_TYPES, *_OTHER_TYPES)

    def type(self) -> Type:
        type = self._plain_type()
        if self.peek() == "(":  # a function type: only its result is needed
            self.skip_group()
        return type

    def _plain_type(self) -> Type:
        token = self.next()
        if re.fullmatch(r"i\d+", token):
            return IntType(int(token[1:]))
        if token in _FLOAT_TYPES:
            return FloatType(token)
        if token in _OTHER_TYPES:
            return OtherType(token)
        if token == "ptr":
            return PointerType(self._address_space())
        if token == "{":
            return self._struct(False)
        if token.startswith("%") and unquoted(token) in self.named_types:
            return Reader(self.named_types[unquoted(token)], self.named_types).type()
        if token == "<" and self.accept("{"):
            struct_type = self._struct(True)
            self.expect(">")
            return struct_type
        if token in ("[", "<"):
            count = int(self.next())
            self.expect("x")
            item = self.type()
            self.expect("]" if token == "[" else ">")
            return SequenceType(item, count, token == "<")
        self.at -= 1
        raise self.unexpected()

    def _address_space(self) -> int:
        if not self.accept("addrspace"):
            return 0
        self.expect("(")
        space = int(self.next())
        self.expect(")")
        return space

    def _struct(self, packed: bool) -> StructType:
        return StructType(tuple(self.type() for _ in self.separated("}")), packed)

    # -------------------------------------------------------------- operands
    def operand(self) -> Operand:
        """A type, attributes and a value."""
        type = self.type()
        self.flags()
        return self.value(type)

    def value(self, type: Type) -> Operand:
        """A value of a known type."""
        kind, token = self.kind(), self.next()
        if kind == "local":
            return Local(unquoted(token), type)
        if kind == "global":
            return Global(unquoted(token), type)
        if kind == "text":
            return Text(content(token), type)
        if kind == "number" or token in _NOT_FINITE:
            return number(token, type)
        match token:
            case "true" | "false":
                return Number(int(token == "true"), type)
            case "null" | "none" | "zeroinitializer":
                return Zero(type)
            case "undef" | "poison":
                return Undefined(type)
            case "asm":
                return self._assembly(type)
            case "splat":
                self.expect("(")
                item = self.operand()
                self.expect(")")
                if isinstance(type, SequenceType):
                    return Aggregate((item,) * type.count, type)
            case "{" | "[" | "<":
                packed = token == "<" and self.accept("{")
                end = "}" if packed or token == "{" else {"[": "]", "<": ">"}[token]
                items = tuple(self.operand() for _ in self.separated(end))
                if packed:
                    self.expect(">")
                return Aggregate(items, type)
        if token in _EXPRESSIONS:
            return self._expression(token, type)
        self.at -= 1
        raise self.unexpected()

    def _assembly(self, type: Type) -> Assembly:
        while self.kind() == "word":
            self.next()
        text = content(self.next()).decode()
        self.expect(",")
        return Assembly(text, content(self.next()).decode(), type)

    def _expression(self, op: str, type: Type) -> Constant:
        while self.kind() == "word":
            if self.next() == "inrange":
                self.skip_group()
        self.expect("(")
        source = None
        if op == "getelementptr":
            source = self.type()
            self.expect(",")
        operands = [self.operand()]
        while self.accept(","):
            operands.append(self.operand())
        if self.accept("to"):
            type = self.type()
        self.expect(")")
        return Constant(op, tuple(operands), type, source)

    def component_type(self, type: Type) -> tuple[Type, tuple[int, ...]]:
        """Read `, 0, 1`; return the type at these indices, and the indices."""
        indices = []
        while self.accept(","):
            indices.append(int(self.next()))
            type = component(type, indices[-1])[0]
        return type, tuple(indices)


def number(token: str, type: Type) -> Number:
    """Return a constant. Floats are decimal, the bits of their type after f0x, or those of a double; 0xH are those of a half, 0xR of a
    bfloat."""
    if isinstance(type, IntType):
        if token[0] in "su":
            value = int(token[3:], 16)
            signed = token[0] == "s" and value >> (type.bits - 1)
            return Number(value - (1 << type.bits) if signed else value, type)
        return Number(int(token), type)
    if not token.startswith(("0x", "f0x")):
        return Number(float(token.replace("q", "")), type)
    forms = {"H": "half", "R": "bfloat"}
    form = type.name if token[0] == "f" and isinstance(type, FloatType) else forms.get(token[2], "double")
    bits = int(token.lstrip("f")[2:].lstrip("HR"), 16)
    if form == "bfloat":
        form, bits = "float", bits << 16
    letter, size = {"half": ("e", 2), "float": ("f", 4)}.get(form, ("d", 8))
    return Number(struct.unpack(f"<{letter}", bits.to_bytes(size, "little"))[0], type)
