"""Debug information of a module: types, names and files of the source, from nodes of metadata that are read on demand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar

_FIELD = re.compile(r'(\w+): ("[^"]*"|![0-9]+|![^,(]+\([^)]*\)|[^,)]+)')
_ITEM = re.compile(r"!(\d+)|null")
_ENCODINGS: Mapping[tuple[str, int], Scalar] = {
    **{("signed", 8 * t.size): t for t in (I8, I16, I32, I64)},
    **{("unsigned", 8 * t.size): t for t in (U8, U16, U32, U64)},
    **{("float", 8 * t.size): t for t in (F16, F32, F64)},
    ("signed_char", 8): I8, ("unsigned_char", 8): U8, ("boolean", 8): BOOL,
}  # fmt: skip
_TRANSPARENT = ("typedef", "const_type", "volatile_type", "restrict_type", "atomic_type", "inheritance")
_REFERENCES = ("reference_type", "rvalue_reference_type")


@dataclass(frozen=True)
class PointerTo:
    """A pointer or a reference. to: None for void and for functions."""

    to: SourceType | None
    reference: bool = False

    def __str__(self) -> str:
        return f"{'void' if self.to is None else self.to} {'&' if self.reference else '*'}"


@dataclass(frozen=True)
class ArrayOf:
    """count: None for an array of unknown length."""

    element: SourceType
    count: int | None

    def __str__(self) -> str:
        return f"{self.element}[{'' if self.count is None else self.count}]"


@dataclass(frozen=True)
class Record:
    """A structure, a class or a union. size: bytes. fields: name, type and offset in bytes of each, base classes first."""

    name: str
    size: int
    fields: tuple[tuple[str, SourceType, int], ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.name


SourceType = Scalar | PointerTo | ArrayOf | Record


def source_size(type: SourceType | None) -> int:
    """Return the bytes of a type; 1 for void, as arithmetic on `void *` counts."""
    match type:
        case ArrayOf(element, count):
            return source_size(element) * (count or 0)
        case PointerTo():
            return 8
    return 1 if type is None else max(type.size, 1)


def source_leaves(
    type: SourceType, path: tuple[str, ...] = (), offset: int = 0
) -> Iterator[tuple[tuple[str, ...], Scalar | PointerTo, int]]:
    """Yield path, type and offset of each scalar and pointer of a value in memory; an item of an array has its number as name."""
    match type:
        case Record(fields=fields):
            for name, kind, at in fields:
                yield from source_leaves(kind, (*path, name) if name else path, offset + at)
        case ArrayOf(element, count):
            for item in range(count or 0):
                yield from source_leaves(element, (*path, str(item)), offset + item * source_size(element))
        case Scalar() | PointerTo():
            yield path, type, offset


def source_scalars(type: SourceType | None) -> set[Scalar]:
    """Return the scalar types in a value; none for a type with pointers alone."""
    match type:
        case Record(fields=fields):
            return {scalar for _, kind, _ in fields for scalar in source_scalars(kind)}
        case ArrayOf(element):
            return source_scalars(element)
        case Scalar():
            return {type}
    return set()


def _with_distinct_members(members: Sequence[tuple[str, SourceType, int]]) -> tuple[tuple[str, SourceType, int], ...]:
    """Return members with a name for each base class that has a member of the name of another one, as those of a tuple have."""
    names = Counter(name for member in members for name in _names_in(*member[:2]))
    return tuple(
        (name or f"base{number}" * any(names[own] > 1 for own in _names_in(name, type)), type, offset)
        for number, (name, type, offset) in enumerate(members)
    )


def _names_in(name: str, type: SourceType) -> set[str]:
    """Return the names of a member in its structure: a base class has those of its members."""
    if name or not isinstance(type, Record):
        return {name}
    return {own for field, kind, _ in type.fields for own in _names_in(field, kind)}


def _with_distinct_names(parameters: Sequence[tuple[str, SourceType]]) -> tuple[tuple[str, SourceType], ...]:
    """Return parameters with a number behind the second of a name and further ones: those of a pack have one name."""
    result: dict[str, SourceType] = {}
    for name, type in parameters:
        numbered = (f"{name}{number}" for number in count(1))
        own = name if name not in result else next(n for n in numbered if n not in result)
        result[own] = type
    return tuple(result.items())


@dataclass(frozen=True)
class DescribedFunction:
    """name: with the arguments of a template. parameters: name and type of each, in order."""

    name: str
    symbol: str
    file: str
    line: int
    parameters: tuple[tuple[str, SourceType], ...]


class DebugInformation:
    """nodes: the text of each node of metadata by its number."""

    def __init__(self, nodes: Mapping[int, str]) -> None:
        self.nodes = nodes
        self._types: dict[int, SourceType | None] = {}

    def fields(self, node: int) -> dict[str, str]:
        """Return the fields of a node; none for an unknown one. The field `kind` is its class."""
        text = self.nodes.get(node, "")
        fields = {name: value.strip('"') for name, value in _FIELD.findall(text.partition("(")[2])}
        return fields | {"kind": text.partition("(")[0]}

    def items(self, reference: str) -> list[int | None]:
        """Return the numbers in a list node; None for a null item."""
        text = self.nodes.get(node_number(reference), "")
        return [int(match[1]) if match[1] else None for match in _ITEM.finditer(text)] if text.startswith("!{") else []

    def variable(self, node: int) -> dict[str, str]:
        """Return the fields of a variable, local or global."""
        fields = self.fields(node)
        return self.fields(node_number(fields["var"])) if fields["kind"] == "!DIGlobalVariableExpression" else fields

    def type_of_variable(self, node: int) -> SourceType | None:
        return self.type(node_number(self.variable(node).get("type", "")))

    def scopes(self, scope: int) -> Iterator[int]:
        """Yield a scope and those around it up to the function's. The scope of a change of files is none of the source."""
        while scope in self.nodes:
            fields = self.fields(scope)
            if fields["kind"] != "!DILexicalBlockFile":
                yield scope
            scope = -1 if fields["kind"].endswith("!DISubprogram") else node_number(fields.get("scope", ""))

    def file(self, scope: int) -> str:
        """Return the path of the file of a scope; "" if it is unknown."""
        fields = self.fields(node_number(self.fields(scope).get("file", "")))
        name, folder = fields.get("filename", ""), fields.get("directory", "")
        return name if not folder or name.startswith(("/", "<")) else f"{folder}/{name}"

    # -------------------------------------------------------------- types
    def type(self, node: int) -> SourceType | None:
        """Return a type of the source; None for void, for functions and for a type inside itself."""
        if not self.nodes.get(node, "").startswith("!DICompositeType("):
            return self._type(self.fields(node))
        if node not in self._types:
            self._types[node] = None  # while its fields are read
            self._types[node] = self._type(self.fields(node))
        return self._types[node]

    def _type(self, fields: Mapping[str, str]) -> SourceType | None:
        size = int(fields.get("size", 0))
        base = node_number(fields.get("baseType", ""))
        tag = fields.get("tag", "").removeprefix("DW_TAG_")
        match fields["kind"]:
            case "!DIBasicType":
                if fields.get("name") == "__bf16":
                    return BF16
                return _ENCODINGS.get((fields.get("encoding", "").removeprefix("DW_ATE_"), size))
            case "!DIDerivedType" if tag in ("pointer_type", *_REFERENCES):
                return PointerTo(self.type(base), tag in _REFERENCES)
            case "!DIDerivedType" if tag in _TRANSPARENT:
                return self.type(base)
            case "!DICompositeType" if tag == "array_type":
                return self._array(self.type(base), self.items(fields.get("elements", "")))
            case "!DICompositeType" if tag == "enumeration_type":
                return self.type(base) if base >= 0 else _ENCODINGS.get(("unsigned", size))
            case "!DICompositeType":
                members = _with_distinct_members(list(self._members(fields.get("elements", ""))))
                return Record(fields.get("name", ""), size // 8, members)
        return None

    def _array(self, element: SourceType | None, extents: list[int | None]) -> SourceType | None:
        for extent in reversed(extents):
            count = int(self.fields(extent).get("count", -1)) if extent is not None else -1
            if element is not None:
                element = ArrayOf(element, count if count >= 0 else None)
        return element

    def _members(self, elements: str) -> Iterator[tuple[str, SourceType, int]]:
        for item in self.items(elements):
            fields = self.fields(-1 if item is None else item)
            tag = fields.get("tag", "")
            if tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "StaticMember" in fields.get("flags", ""):
                continue
            type = self.type(node_number(fields.get("baseType", "")))
            if type is not None:
                yield (
                    ("" if tag == "DW_TAG_inheritance" else fields.get("name", "")),
                    type,
                    int(fields.get("offset", 0)) // 8,
                )

    # -------------------------------------------------------------- functions
    @cached_property
    def functions(self) -> Mapping[str, DescribedFunction]:
        """The functions with a body by symbol."""
        own_numbers = [
            key for key, text in self.nodes.items() if text.startswith("!DISubprogram(") and "Definition" in text
        ]
        parameters: dict[int, dict[int, tuple[str, SourceType]]] = {}
        for key, text in self.nodes.items():
            if text.startswith("!DILocalVariable(") and (place := re.search(r"\barg: (\d+)", text)):
                fields = self.fields(key)
                type = self.type(node_number(fields.get("type", "")))
                owner = parameters.setdefault(node_number(fields.get("scope", "")), {})
                owner[int(place[1])] = (
                    fields.get("name", f"argument{place[1]}"),
                    type if type is not None else PointerTo(None),
                )
        result = {}
        for key in own_numbers:
            fields = self.fields(key)
            symbol = fields.get("linkageName", fields.get("name", ""))
            own = _with_distinct_names([value for _, value in sorted(parameters.get(key, {}).items())])
            result[symbol] = DescribedFunction(
                fields.get("name", ""), symbol, self.file(key), int(fields.get("line", 0)), own
            )
        return result


def node_number(reference: str) -> int:
    """Return the number in a reference such as !12; -1 for others."""
    return int(reference[1:]) if reference[:1] == "!" and reference[1:].isdigit() else -1
