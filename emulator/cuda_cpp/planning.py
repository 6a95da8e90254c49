"""The plan of memory of a kernel, before it is lowered: the memory that each pointer may refer to, the types of all accesses, and the
arrays that are in registers.

A walk over the syntax tree and, at each call, over the tree of the called function. It is repeated until no pointer variable gains
memory: pointers are analysed without regard to the order of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CompileError, Diagnostic
from ..language.types import Scalar, Vector
from ..span import Span
from .counted import MAX_TRIPS, counted_loop, jumps
from .declaration import Alias
from .tree import Function, Node, Variable, assigned
from .types import ArrayType, CType, PointerType, RecordType
from .values import Memory

MAX_CALLS = 32
MAX_REGISTERS = 256
"""Elements of an array in registers."""
MAX_WALKS = 12

Path = tuple[Node, ...]
Key = tuple[Path, Variable]
Loops = frozenset[Any] | None
"""The unrolled loops that determine an index; None if it is known at run time only."""
Targets = dict[Any, Loops]
"""Objects that a pointer may refer to, or in which an object is: a Memory, a Key of a variable in registers, None for null."""


@dataclass
class Plan:
    """memories: by the variable of a file, or by path and variable. pointees: of assigned pointer variables, in a fixed order.
    wide: pointer variables with offsets of 64 bits. unrolled: loops by path and node. changed: variables that are assigned."""

    memories: dict[Any, Memory] = field(default_factory=dict)
    pointees: dict[Key, list[Memory | None]] = field(default_factory=dict)
    wide: set[Key] = field(default_factory=set)
    unrolled: set[Any] = field(default_factory=set)
    changed: set[Variable] = field(default_factory=set)


def plan_memory(kernel: Function, aliases: Mapping[str, Alias]) -> Plan:
    """Return the plan of a kernel. Raises CompileError."""
    planner = Planner(aliases)
    for _ in range(MAX_WALKS):
        planner.grown = False
        planner.kernel(kernel)
        if not planner.grown:
            break
    for memory in planner.plan.memories.values():
        memory.decide()
        in_registers = not memory.runtime and memory.fits_registers and (memory.count or 0) <= MAX_REGISTERS
        if memory.space == "local" and in_registers:
            memory.space = "register"
            planner.plan.unrolled |= memory.loops
    return planner.plan


class Planner:
    def __init__(self, aliases: Mapping[str, Alias]) -> None:
        self.plan, self.aliases = Plan(), aliases
        self.grown = False
        self.path: Path = ()
        self.homes: dict[Variable, Path] = {}
        self.targets: dict[Key, Targets] = {}  # of pointer variables and references
        self.loops: dict[Key, Loops] = {}  # of counters of unrolled loops, and of variables computed from them
        self.this: Targets = {}
        self.returned: Targets = {}
        self.lambdas: dict[Variable, Function] = {}

    # -------------------------------------------------------------- functions
    def kernel(self, kernel: Function) -> None:
        assert kernel.body is not None
        self.plan.changed |= set(assigned(kernel.body))
        for parameter in kernel.parameters:
            self.homes[parameter] = ()
            if isinstance(parameter.type, PointerType) or parameter.reference:
                self._add(((), parameter), {self._parameter(parameter): frozenset()})
        self.visit(kernel.body)

    def _parameter(self, parameter: Variable) -> Memory | None:
        alias = self.aliases.get(parameter.name, Alias(parameter.name))
        if alias.parameter is None:
            return None
        if alias.parameter not in self.plan.memories:
            type: CType | None = parameter.type if parameter.reference else getattr(parameter.type, "to", None)
            while isinstance(type, ArrayType):
                type = type.element
            if isinstance(type, PointerType):
                raise _refused(parameter.span, f"{parameter.name} is a pointer to pointers: not supported")
            memory = Memory(
                alias.parameter, "global", type or Scalar("u8", "uint", 1), parameter.span, volatile=parameter.volatile
            )
            self.plan.memories[alias.parameter] = memory
        return self.plan.memories[alias.parameter]

    def call(self, node: Node, function: Function, this: Targets) -> Targets:
        """Walk over a called function in the place of its call. Return the targets of its result."""
        if function.body is None:
            return {}
        if len(self.path) > MAX_CALLS or any(
            entry.function is function for entry in self.path if function.name != "lambda"
        ):
            raise _refused(
                node.span, f"{function.name} calls itself, or calls nest too deep: recursion is not supported"
            )
        arguments = node.children[1:]
        inputs = [
            self.place(argument) if parameter.reference else self.visit(argument)
            for parameter, argument in zip(function.parameters, arguments, strict=False)
            if argument is not None
        ]
        loops = [self.index_loops(argument) for argument in arguments if argument is not None]
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            if argument is not None and (passed := self._lambda_of(argument)) is not None:
                self.lambdas[parameter] = passed
        outer = self.path, self.this, self.returned
        self.path, self.this, self.returned = (*self.path, node), this, {}
        self.plan.changed |= set(assigned(function.body))
        for parameter, value, unrolled in zip(function.parameters, inputs, loops, strict=False):
            self._bind(parameter, value, unrolled)
        for _, value_node in function.members:
            self.visit(value_node)
        self.visit(function.body)
        result = self.returned
        self.path, self.this, self.returned = outer
        return result

    def _bind(self, variable: Variable, value: Targets, loops: Loops) -> None:
        key = self.path, variable
        self.homes[variable] = self.path
        if isinstance(variable.type, PointerType) or variable.reference:
            self._add(key, value)
        if variable not in self.plan.changed:
            self.loops[key] = loops

    def _add(self, key: Key, value: Targets) -> None:
        previous = self.targets.setdefault(key, {})
        if (merged := _merged([previous, value])) != previous:
            self.targets[key] = merged
            self.grown = True
        if isinstance(key[1].type, PointerType) and key[1] in self.plan.changed:
            for target in value:
                if isinstance(target, tuple):
                    message = f"{key[1].name} is assigned and points to a variable in registers: not supported"
                    raise _refused(key[1].span, message)
                pointees = self.plan.pointees.setdefault(key, [])
                if target not in pointees:
                    pointees.append(target)

    # -------------------------------------------------------------- statements and values
    def visit(self, node: Node) -> Targets:
        """Walk over a statement or an expression that is evaluated. Return the targets of a pointer."""
        method = getattr(self, f"_{node.kind}", None)
        if method is not None:
            result: Targets = method(node)
            return result
        if node.kind in ("name", "field", "index", "view"):
            return self._read(node)
        for child in node.present:
            self.visit(child)
        return {}

    def _read(self, node: Node) -> Targets:
        if isinstance(node.type, PointerType):
            if node.kind != "name" or node.variable is None:
                raise _refused(node.span, "a pointer in memory or in a struct is not supported")
            return self._pointer(node.variable)
        self.access(node)
        return {}

    def _pointer(self, variable: Variable) -> Targets:
        key = self.homes.get(variable, ()), variable
        results = self.targets.get(key, {})
        return dict.fromkeys(results) if variable in self.plan.changed else results

    def _declare(self, node: Node) -> Targets:
        variable = node.variable
        assert variable is not None
        self.homes[variable] = self.path
        if variable.place in ("shared", "constant", "device"):
            self._memory(variable)
            return {}
        initial = variable.initial
        if initial is None:
            return {}
        if (function := self._lambda_of(initial)) is not None:
            self.lambdas[variable] = function
            return {}
        value = self.place(initial) if variable.reference else self.visit(initial)
        self._bind(variable, value, self.index_loops(initial))
        if (
            isinstance(variable.type, ArrayType | RecordType)
            and not variable.reference
            and self._in_memory(variable.type)
        ):
            memory = self._memory(variable)
            memory.accesses |= set(_accessed(variable.type))
        return {}

    def _for(self, node: Node) -> Targets:
        first, *rest = node.children
        if first is not None:
            self.visit(first)
        loop = counted_loop(node)
        if loop is not None and not jumps(node[3]) and (loop.trips is None or loop.trips <= MAX_TRIPS):
            bounds = [self.index_loops(loop.start), self.index_loops(loop.stop)]
            if loop.constant_step is not None and None not in bounds:
                key = self.path, node
                self.loops[self.homes.get(loop.variable, self.path), loop.variable] = _union(
                    [*bounds, frozenset([key])]
                )
        for piece in rest:
            if piece is not None:
                self.visit(piece)
        return {}

    def _return(self, node: Node) -> Targets:
        if node.children:
            function = self.path[-1].function if self.path else None
            reference = function is not None and function.returns_reference
            value = self.place(node[0]) if reference else self.visit(node[0])
            self.returned = _merged([self.returned, value])
        return {}

    def _lambda(self, node: Node) -> Targets:
        return {}

    def _assign(self, node: Node) -> Targets:
        value = self.visit(node[1])
        self._store(node[0], value, node)
        return self.visit(node[0]) if isinstance(node.type, PointerType) else {}

    def _store(self, place: Node, value: Targets, node: Node) -> None:
        if not isinstance(place.type, PointerType):
            self.access(place)
            return
        variable = place.variable
        if place.kind != "name" or variable is None:
            raise _refused(place.span, "a pointer in memory or in a struct is not supported")
        key = self.homes.get(variable, ()), variable
        self._add(key, value if node.kind == "assign" and not node.sign else self._pointer(variable))
        if any(isinstance(entry.type, Scalar) and entry.type.size > 4 for entry in node.walk()):
            self.plan.wide.add(key)

    def _unary(self, node: Node) -> Targets:
        if node.sign == "&":
            return self.place(node[0])
        if node.sign == "*":
            if isinstance(node.type, PointerType):
                raise _refused(node.span, "a pointer in memory is not supported")
            self.access(node)
            return {}
        if node.sign in ("x++", "x--", "++x", "--x"):
            self._store(node[0], {}, node)
            return dict.fromkeys(self.visit(node[0]))
        return self.visit(node[0])

    def _binary(self, node: Node) -> Targets:
        first, second = self.visit(node[0]), self.visit(node[1])
        if node.sign in ("+", "-") and isinstance(node.type, PointerType):
            pointer, index = (first, node[1]) if isinstance(node[0].type, PointerType) else (second, node[0])
            return self._moved(pointer, index)
        return second if node.sign == "," else {}

    def _moved(self, targets: Targets, index: Node) -> Targets:
        loops = self.index_loops(index)
        return {target: _union([known, loops]) for target, known in targets.items()}

    def _conditional(self, node: Node) -> Targets:
        self.visit(node[0])
        return _merged([self.visit(node[1]), self.visit(node[2])])

    def _cast(self, node: Node) -> Targets:
        if node.sign == "decay":
            return self.place(node[0])
        value = self.visit(node[0])
        return (
            {None: frozenset()}
            if isinstance(node.type, PointerType) and not isinstance(node[0].type, PointerType)
            else value
        )

    def _null(self, node: Node) -> Targets:
        return {None: frozenset()}

    def _this(self, node: Node) -> Targets:
        return self.this

    def _call(self, node: Node) -> Targets:
        owner = node.children[0]
        if node.sign == "lambda":
            return self.call(node, self.called_lambda(node), self.this)
        function = node.function
        assert function is not None
        this: Targets = {}
        if owner is not None:
            this = self.visit(owner) if isinstance(owner.type, PointerType) else self.place(owner)
            if function.generated and function.name == "operator=":
                self.access(owner)
        elif function.owner is not None and node.sign != "construct":
            this = self.this
        if function.body is not None:
            return self.call(node, function, this)
        for argument in node.children[1:]:
            if argument is not None:
                self._argument(function.name, argument)
        return {}

    def _argument(self, name: str, argument: Node) -> None:
        """Walk over an argument of an intrinsic; the pointer of an atomic operation is an access of its type."""
        targets = self.visit(argument)
        to = argument.type.to if isinstance(argument.type, PointerType) else None
        if not isinstance(to, Scalar | Vector) or name.startswith("__pipeline"):
            return
        self._accessed(targets, to)

    def called_lambda(self, node: Node) -> Function:
        """Return the lambda that a call refers to."""
        owner = node.children[0]
        function = None if owner is None else self._lambda_of(owner)
        if function is None:
            raise _refused(node.span, "the called lambda is not known at compile time")
        node.function = function
        return function

    def _lambda_of(self, node: Node) -> Function | None:
        while node.kind == "cast":
            node = node[0]
        if node.kind == "lambda":
            return node.function
        return None if node.variable is None else self.lambdas.get(node.variable)

    # -------------------------------------------------------------- objects
    def place(self, node: Node) -> Targets:
        """Walk over an expression that denotes an object. Return the memory, or the variable in registers, that contains it."""
        if node.kind == "name":
            return self._named(node)
        if node.kind == "field":
            owner = node.children[0]
            if owner is None:
                return self.this
            return self.visit(owner) if node.sign == "->" else self.place(owner)
        if node.kind == "index":
            return self._indexed(node)
        if node.kind == "view":
            return self.place(node[0])
        if node.kind == "unary" and node.sign == "*":
            return self.visit(node[0])
        if node.kind == "assign" or (node.kind == "unary" and node.sign in ("++x", "--x")):
            self.visit(node)
            return self.place(node[0])
        if node.kind == "conditional":
            self.visit(node[0])
            return _merged([self.place(node[1]), self.place(node[2])])
        return self.visit(node)

    def _indexed(self, node: Node) -> Targets:
        targets = self.visit(node[0])
        self.visit(node[1])
        return self._moved(targets, node[1])

    def _named(self, node: Node) -> Targets:
        variable = node.variable
        assert variable is not None
        home = self.homes.get(variable, ())
        if variable.place in ("shared", "constant", "device"):
            return {self._memory(variable): frozenset()}
        if variable.reference:
            return self.targets.get((home, variable), {})
        if self._in_memory(variable.type):
            return {self._memory(variable): frozenset()}
        return {(home, variable): frozenset()}

    def _in_memory(self, type: CType) -> bool:
        if isinstance(type, RecordType):
            return any(isinstance(kind, ArrayType) for _, kind, _ in type.leaves())
        return isinstance(type, ArrayType)

    def _memory(self, variable: Variable) -> Memory:
        """Return the memory of a variable; each call of a function has its own local arrays."""
        if variable.dynamic:
            key: Any = "dynamic shared memory"
        else:
            key = variable if variable.place in ("constant", "device", "shared") else (self.homes[variable], variable)
        if key not in self.plan.memories:
            type, extents = variable.type, tuple[int, ...]()
            if isinstance(type, ArrayType):
                extents, type = type.extents, type.innermost
            if isinstance(type, PointerType):
                raise _refused(variable.span, f"{variable.name} is an array of pointers: not supported")
            count = 1
            for extent in extents:
                count *= extent
            spaces: dict[str, Any] = {"shared": "shared", "constant": "constant", "device": "global"}
            space = spaces.get(variable.place, "local")
            elements = None if variable.dynamic or space == "global" else count
            self.plan.memories[key] = Memory(
                variable.name,
                space,
                type,
                variable.span,
                elements,
                () if variable.dynamic else extents,
                variable,
                variable.volatile,
            )
        return self.plan.memories[key]

    def access(self, node: Node) -> None:
        """Note a load or a store of an object."""
        if node.type is None or isinstance(node.type, ArrayType):
            self.place(node)
            return
        self._accessed(self.place(node), node.type)

    def _accessed(self, targets: Targets, type: CType) -> None:
        for target, loops in targets.items():
            if isinstance(target, Memory):
                target.accesses |= set(_accessed(type))
                if loops is None:
                    target.runtime = True
                else:
                    target.loops |= loops
            elif loops:  # a component of a vector in registers
                self.plan.unrolled |= loops

    # -------------------------------------------------------------- indices
    def index_loops(self, node: Node) -> Loops:
        """Return the loops whose counters determine an integer; None if it is known at run time only."""
        if node.kind == "constant":
            return frozenset()
        if node.kind == "name" and node.variable is not None:
            return self.loops.get((self.homes.get(node.variable, ()), node.variable))
        arithmetic = node.kind in ("cast", "binary", "conditional") or (
            node.kind == "unary" and node.sign in ("-", "+", "~", "!")
        )
        if arithmetic and isinstance(node.type, Scalar):
            return _union([self.index_loops(child) for child in node.present])
        return None


def _accessed(type: CType) -> Iterable[CType]:
    """Return the types of the accesses that copy an object."""
    if isinstance(type, RecordType):
        return [entry for _, kind, _ in type.leaves() for entry in _accessed(kind)]
    return _accessed(type.innermost) if isinstance(type, ArrayType) else [type]


def _union(loops: list[Loops]) -> Loops:
    results: frozenset[Any] = frozenset()
    for entry in loops:
        if entry is None:
            return None
        results |= entry
    return results


def _merged(several: list[Targets]) -> Targets:
    result: Targets = {}
    for targets in several:
        for target, loops in targets.items():
            result[target] = _union([result[target], loops]) if target in result else loops
    return result


def _refused(span: Span, message: str) -> CompileError:
    return CompileError([Diagnostic("compile", message, span)])
