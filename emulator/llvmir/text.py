"""Parser of LLVM IR text: one instruction a line, as LLVM prints it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from .debug import DebugInformation
from .module import Block, Function, Instruction, Local, Module, Operand, Position, Variable
from .reader import NO_TYPES, Reader, unquoted
from .types import I1, LABEL, VOID, IntType, PointerType, SequenceType, StructType, Type, UnsupportedError

_BINARY = (
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
    "fadd", "fsub", "fmul", "fdiv", "frem",
)  # fmt: skip
_CASTS = (
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint", "ptrtoaddr", "inttoptr",
    "bitcast", "addrspacecast",
)  # fmt: skip
_ORDERINGS = ("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst")
_FIELD_OF_POSITION = re.compile(r"(line|column|scope|inlinedAt): !?(\d+)")
NAMED_TYPE = re.compile(r'(%"[^"]*"|%[-\w.$]+) = type (.*)')
_NODE = re.compile(r"!(\d+) = (?:distinct )?(!(?:DI|\{).*)")
_RECORD = re.compile(r'#dbg_(?:value|declare)\((?:[^%@]*) (%"[^"]*"|%[-\w.$]+), !(\d+), !DIExpression\(\),')
"""A record that a variable has a value, or the memory of an alloca."""
_LOCATION = re.compile(r"!(\d+) = (?:distinct )?!DILocation\((.*)\)")
_ATTACHED = re.compile(r",\s*![\w.]+ (?:distinct )?!\w*(?:\(.*\)|\{.*\})?")


def parse_declarations(text: str) -> Module:
    """Return the module of a text without its functions. Raises UnsupportedError as `parse`."""
    return parse("\n".join(line for line in text.splitlines() if line.startswith(("@", "%", "!"))))


def parse(text: str) -> Module:
    """Return the module of a text. Raises UnsupportedError for text that this parser does not know."""
    functions: dict[str, Function] = {}
    variables: dict[str, Variable] = {}
    positions: dict[int, Position] = {}
    nodes: dict[int, str] = {}
    lines = text.splitlines()
    named = {unquoted(match[1]): match[2] for line in lines if (match := NAMED_TYPE.match(line))}
    rest = iter(lines)
    for line in rest:
        if line.startswith("define "):
            function = _function(line, rest, named)
            functions[function.name] = function
        elif line.startswith("@"):
            variable = _variable(line, named)
            if variable is not None:
                variables[variable.name] = variable
        elif match := _LOCATION.match(line):
            positions[int(match[1])] = _position(match[2])
        elif match := _NODE.match(line):
            nodes[int(match[1])] = match[2]
    return Module(functions, variables, positions, DebugInformation(nodes))


def _position(fields: str) -> Position:
    numbers = {name: int(number) for name, number in _FIELD_OF_POSITION.findall(fields)}
    return Position(
        *(
            numbers.get(name, default)
            for name, default in (("line", 0), ("inlinedAt", -1), ("column", 0), ("scope", -1))
        )
    )


def _variable(line: str, named: Mapping[str, str]) -> Variable | None:
    """Return a global variable; None for an alias, which has no memory of its own, and for lists of the compiler."""
    if " appending " in line:
        return None
    described = re.search(r", !dbg !(\d+)", line)
    reader = Reader(_ATTACHED.sub("", line), named)
    name = unquoted(reader.next())
    reader.expect("=")
    space, external = 0, False
    while (word := reader.next()) not in ("global", "constant"):
        if word in ("alias", "ifunc"):
            return None
        external = external or word in ("external", "extern_weak")
        if word == "addrspace":
            reader.expect("(")
            space = int(reader.next())
        if reader.peek() == "(":
            reader.skip_group()
    type = reader.type()
    has_initial = not external and reader.peek() not in ("", ",")
    initial = reader.value(type) if has_initial else None
    return Variable(name, type, initial, space, word == "constant", int(described[1]) if described else -1)


def _function(line: str, lines: Iterator[str], named: Mapping[str, str]) -> Function:
    """Read a function from its `define` line to its closing brace."""
    reader = Reader(_ATTACHED.sub("", line), named)
    reader.next()
    reader.flags()
    result = reader.type()
    name = unquoted(reader.next())
    reader.expect("(")
    parameters: list[Local] = []
    unnamed = 0
    for _ in reader.separated(")"):
        type = reader.type()
        reader.flags()
        if reader.kind() == "local":
            parameters.append(Local(unquoted(reader.next()), type))
        else:
            parameters.append(Local(str(unnamed), type))
            unnamed += 1
    unnamed = sum(parameter.name.isdigit() for parameter in parameters)
    variables: dict[str, int] = {}
    return Function(name, tuple(parameters), result, list(_blocks(lines, str(unnamed), named, variables)), variables)


def _blocks(lines: Iterator[str], entry: str, named: Mapping[str, str], variables: dict[str, int]) -> Iterator[Block]:
    """Yield the blocks of a function. variables: receives those that values have."""
    block: Block | None = None
    for line in lines:
        stripped = line.strip()
        if stripped == "}":
            break
        label = re.match(r'("[^"]*"|[-\w.$]+):', line)
        if label:
            if block is not None:
                yield block
            block = Block(unquoted(label[1]))
        elif stripped and not stripped.startswith(("#dbg", ";", "call void @llvm.dbg.")):
            if stripped.startswith("switch ") and "]" not in stripped:
                stripped = " ".join([stripped, *_until_bracket(lines)])
            block = block or Block(entry)
            block.instructions.append(instruction(stripped, named))
        elif record := _RECORD.match(stripped):
            variables.setdefault(unquoted(record[1]), int(record[2]))
    if block is not None:
        yield block


def _until_bracket(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line.strip()
        if line.strip().startswith("]"):
            return


def instruction(line: str, named: Mapping[str, str] = NO_TYPES) -> Instruction:
    """Return the instruction of a line. named: the texts of types with names."""
    position = re.search(r", !dbg !(\d+)", line)
    reader = Reader(_ATTACHED.sub("", line), named)
    name = ""
    if reader.kind() == "local" and reader.peek(1) == "=":
        name = unquoted(reader.next())
        reader.next()
    op = reader.next()
    while op in ("tail", "notail", "musttail"):
        op = reader.next()
    parse_rest = _PARSERS.get(op)
    if parse_rest is None:
        raise UnsupportedError(f"the instruction {op} is not supported")
    result = parse_rest(reader, op, name, int(position[1]) if position else -1)
    loop = re.search(r"!llvm\.loop !(\d+)", line)
    return replace(result, loop=int(loop[1])) if loop else result


# ------------------------------------------------------------------ one parser for each kind of instruction
def _binary(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    first = reader.operand()
    reader.expect(",")
    return Instruction(op, name, first.type, (first, reader.value(first.type)), position, flags)


def _unary(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    operand = reader.operand()
    return Instruction(op, name, operand.type, (operand,), position, flags)


def _cast(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    operand = reader.operand()
    reader.expect("to")
    return Instruction(op, name, reader.type(), (operand,), position, flags)


def _comparison(reader: Reader, op: str, name: str, position: int) -> Instruction:
    words = []
    while not reader.starts_type() and reader.kind() == "word":
        words.append(reader.next())
    first = reader.operand()
    reader.expect(",")
    type: Type = I1
    if isinstance(first.type, SequenceType):
        type = SequenceType(I1, first.type.count, True)
    return Instruction(op, name, type, (first, reader.value(first.type)), position, word=words[-1])


def _operands(reader: Reader) -> tuple[Operand, ...]:
    operands = [reader.operand()]
    while reader.accept(","):
        if reader.peek() == "align":
            break
        operands.append(reader.operand())
    return tuple(operands)


def _return(reader: Reader, op: str, name: str, position: int) -> Instruction:
    operands = () if reader.peek() in ("void", "") else (reader.operand(),)
    return Instruction(op, name, VOID, operands, position)


def _branch(reader: Reader, op: str, name: str, position: int) -> Instruction:
    operands = _operands(reader)
    targets = tuple(o.name for o in operands if isinstance(o, Local) and o.type == LABEL)
    return Instruction(op, name, VOID, tuple(o for o in operands if o.type != LABEL), position, targets=targets)


def _switch(reader: Reader, op: str, name: str, position: int) -> Instruction:
    value = reader.operand()
    reader.expect(",")
    targets, cases = [_label(reader)], []
    reader.expect("[")
    while not reader.accept("]"):
        case = reader.operand()
        cases.append(int(getattr(case, "value", 0)))
        reader.expect(",")
        targets.append(_label(reader))
    return Instruction(op, name, VOID, (value,), position, targets=tuple(targets), cases=tuple(cases))


def _label(reader: Reader) -> str:
    label = reader.operand()
    if not isinstance(label, Local):
        raise reader.unexpected()
    return label.name


def _select(reader: Reader, op: str, name: str, position: int) -> Instruction:
    reader.flags()
    operands = _operands(reader)
    return Instruction(op, name, operands[1].type, operands, position)


def _phi(reader: Reader, op: str, name: str, position: int) -> Instruction:
    reader.flags()
    type, incoming = reader.type(), []
    while reader.accept("["):
        value = reader.value(type)
        reader.expect(",")
        incoming.append((unquoted(reader.next()), value))
        reader.expect("]")
        reader.accept(",")
    return Instruction(op, name, type, position=position, incoming=tuple(incoming))


def _element_pointer(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    source = reader.type()
    reader.expect(",")
    operands = _operands(reader)
    return Instruction(op, name, operands[0].type, operands, position, flags, source=source)


def _trailing(reader: Reader, flags: frozenset[str]) -> tuple[str, str, int]:
    """Return what follows the operands of an access: its ordering ("", "volatile", or one of LLVM's), its scope ("" for the system)
    and its alignment in bytes, 1 if it states none."""
    words = []
    while reader.at < len(reader.tokens):
        words.append(reader.next())
    ordering = next((word for word in _ORDERINGS if word in words), "")
    scope = words[words.index("syncscope") + 2].strip('"') if "syncscope" in words else ""
    alignment = int(words[words.index("align") + 1]) if "align" in words else 1
    return ordering or ("volatile" if "volatile" in flags else ""), scope, alignment


def _load(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    type = reader.type()
    reader.expect(",")
    pointer = reader.operand()
    word, scope, alignment = _trailing(reader, flags)
    return Instruction(op, name, type, (pointer,), position, flags, word, scope=scope, alignment=alignment)


def _store(reader: Reader, op: str, name: str, position: int) -> Instruction:
    flags = reader.flags()
    value = reader.operand()
    reader.expect(",")
    pointer = reader.operand()
    word, scope, alignment = _trailing(reader, flags)
    return Instruction(op, name, VOID, (value, pointer), position, flags, word, scope=scope, alignment=alignment)


def _alloca(reader: Reader, op: str, name: str, position: int) -> Instruction:
    source = reader.type()
    operands: tuple[Operand, ...] = ()
    if reader.accept(",") and reader.peek() != "align":
        if reader.peek() == "addrspace":
            raise reader.unexpected()
        operands = (reader.operand(),)
    return Instruction(op, name, PointerType(), operands, position, source=source)


def _extract(reader: Reader, op: str, name: str, position: int) -> Instruction:
    value = reader.operand()
    type, indices = reader.component_type(value.type)
    return Instruction(op, name, type, (value,), position, indices=indices)


def _insert(reader: Reader, op: str, name: str, position: int) -> Instruction:
    value = reader.operand()
    reader.expect(",")
    item = reader.operand()
    _, indices = reader.component_type(value.type)
    return Instruction(op, name, value.type, (value, item), position, indices=indices)


def _vector(reader: Reader, op: str, name: str, position: int) -> Instruction:
    operands = _operands(reader)
    type = operands[0].type
    if isinstance(type, SequenceType) and op == "extractelement":
        type = type.item
    return Instruction(op, name, type, operands, position)


def _atomic(reader: Reader, op: str, name: str, position: int) -> Instruction:
    words = []
    while reader.kind() == "word" and not reader.starts_type():
        words.append(reader.next())
    operands = [reader.operand()]
    reader.expect(",")
    operands.append(reader.operand())
    ordering, scope, _ = _trailing(reader, frozenset())
    flags = frozenset((ordering,))
    return Instruction(op, name, operands[1].type, tuple(operands), position, flags, words[-1], scope=scope)


def _compare_exchange(reader: Reader, op: str, name: str, position: int) -> Instruction:
    reader.flags()
    operands = [reader.operand()]
    for _ in range(2):
        reader.expect(",")
        operands.append(reader.operand())
    ordering, scope, _ = _trailing(reader, frozenset())
    type = StructType((operands[1].type, I1))
    return Instruction(op, name, type, tuple(operands), position, frozenset((ordering,)), scope=scope)


def _fence(reader: Reader, op: str, name: str, position: int) -> Instruction:
    words = []
    while reader.at < len(reader.tokens):
        words.append(reader.next())
    scope = next((w[1:-1] for w in words if w.startswith('"')), "")
    return Instruction(op, name, VOID, (), position, word=scope)


def _call(reader: Reader, op: str, name: str, position: int) -> Instruction:
    reader.flags()
    type = reader.type()
    reader.flags()
    callee = reader.value(PointerType())
    reader.expect("(")
    operands = []
    for _ in reader.separated(")"):
        operands.append(_argument(reader))
    alignment = min(reader.alignments, default=1)
    return Instruction(op, name, type, tuple(operands), position, callee=callee, alignment=alignment)


def _argument(reader: Reader) -> Operand:
    if reader.accept("metadata"):
        while reader.peek() not in (",", ")"):
            if reader.peek() == "(":
                reader.skip_group()
            else:
                reader.next()
        return Local("", IntType(1))
    return reader.operand()


def _unreachable(reader: Reader, op: str, name: str, position: int) -> Instruction:
    return Instruction(op, name, VOID, position=position)


_PARSERS: dict[str, Callable[[Reader, str, str, int], Instruction]] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(("fneg", "freeze"), _unary),
    **dict.fromkeys(("icmp", "fcmp"), _comparison),
    **dict.fromkeys(("extractelement", "insertelement", "shufflevector"), _vector),
    "ret": _return, "br": _branch, "switch": _switch, "unreachable": _unreachable, "select": _select, "phi": _phi,
    "getelementptr": _element_pointer, "load": _load, "store": _store, "alloca": _alloca, "extractvalue": _extract,
    "insertvalue": _insert, "atomicrmw": _atomic, "cmpxchg": _compare_exchange, "fence": _fence, "call": _call,
}  # fmt: skip
