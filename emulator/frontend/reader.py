"""Specialisation: a kernel and its device functions as one IR program for given constants and types."""

import ast
import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.limits import MOST_STATEMENTS
from ..ir.spec import verify
from ..ir.walk import effect, statements
from ..language import hints
from ..language.functions import DeviceFunction, Kernel, SourceFunction
from ..language.types import FLAT, Array, ArrayLayout, Scalar, Space
from ..language.types import Value as ValueType
from ..span import Span
from . import arrays, calls, mbarriers, records, struct_arrays, typing
from .advice import type_advice
from .constants import Literal, Tuple, exact, is_struct
from .host_calls import host_function
from .protocols import FunctionReader, Progress
from .signature import KernelParameter, Signature
from .source import MISSING, FunctionSource
from .statements import StatementReader
from .values import (
    NOTHING,
    AlreadyReported,
    ArrayValue,
    Host,
    NeedsConstants,
    SourceError,
    StructArray,
    Value,
    describe,
    of_python,
)

SPACES: dict[type, Space] = {
    hints.TensorMap: "global", hints.Global: "global", hints.Shared: "shared", hints.Local: "local",
    hints.Constant: "constant", hints.Registers: "register",
}  # fmt: skip
_ANNOTATIONS = {space: word for word, space in SPACES.items()}


@dataclass
class Specialised:
    """A program and the external values it depends on; stale after one of them changes."""

    program: ir.Program
    externals: list[tuple[Any, str, Any]] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        return any(_lookup(holder, name) is not value for holder, name, value in self.externals)


@dataclass
class _Binding:
    """The parameters of a device function bound to the arguments of one call. key: of the specialised function."""

    caller: FunctionReader
    reader: StatementReader
    key: list[Any]
    params: list[ir.Param] = field(default_factory=list)
    args: list[ir.Expr | ir.ArrayRef] = field(default_factory=list)

    def pass_array(self, name: str, array: ArrayValue, span: Span, call: Span) -> ArrayValue:
        """Bind the parameter `name` to an array. Return the array inside the function."""
        actual, more = arrays.argument(name, array, span)
        self.params += [ir.Param(name, actual.type, span), *(param for param, _ in more)]
        self.args += [ir.ArrayRef(array.name, call), *(value for _, value in more)]
        return actual


class Specialiser:
    """Reader of the functions of one program; it collects their errors."""

    def __init__(self, real: Scalar | None, host_calls: bool = False) -> None:
        self.real, self.host_calls = real, host_calls
        self.uses_real = False
        self.depth = self.statements = 0
        self.diagnostics: list[Diagnostic] = []
        self.functions: list[ir.Function] = []
        self.externals: list[tuple[Any, str, Any]] = []
        self._specialised: dict[tuple[Any, ...], ir.Function | None] = {}
        self._open: list[DeviceFunction] = []
        self._types: dict[str, Any] = {}  # result types by function name

    # -------------------------------------------------------------- services for function readers
    def report(self, span: Span, message: str, *notes: str) -> None:
        diagnostic = Diagnostic("compile", message, span, notes)
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def progress(self) -> Progress:
        return (len(self.diagnostics),)

    def restore(self, progress: Progress) -> None:
        del self.diagnostics[progress[0] :]

    def count(self, span: Span) -> None:
        """Count a statement. Loops over constants and device functions are read repeatedly."""
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            message = (
                f"more than {MOST_STATEMENTS:,} statements are read up to here; an unrolled loop counts each iteration"
            )
            raise CompileError([Diagnostic("compile", message, span, ("use a plain range(...) for the loop",))])

    def check(self) -> None:
        """Raise CompileError if errors were recorded."""
        if self.diagnostics:
            raise CompileError(sorted(self.diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column)))

    def external(self, source: FunctionSource, name: str) -> Any:
        """Return the object of a name outside the function, and record it for staleness."""
        return self._remember(source, name)

    def attribute(self, module: ModuleType, name: str) -> Any:
        return self._remember(module, name)

    def _remember(self, holder: Any, name: str) -> Any:
        value = _lookup(holder, name)
        self.externals.append((holder, name, value))
        return value

    def real_type(self, span: Span) -> Scalar:
        self.uses_real = True
        if self.real is None:
            raise SourceError(
                span,
                "Real is not decided",
                'pass an array for a Global[Real] parameter, or types={"Real": "f32"} to launch',
            )
        return self.real

    # -------------------------------------------------------------- functions
    def kernel(self, kernel: Kernel, consts: Mapping[str, Any], layouts: Mapping[str, ArrayLayout]) -> ir.Function:
        reader, params = self._entry(kernel, consts, layouts)
        tree = reader.source.tree
        if tree.returns is not None and not (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
            self.report(reader.span(tree.returns), "a kernel returns nothing", "write -> None")
        reader.in_kernel = True
        reader.read_function(tree.body)
        return ir.Function(
            kernel.__name__,
            tuple(params),
            reader.swaps.expanded(tuple(reader.body)),
            None,
            reader.span(tree),
            host_function(reader),
        )

    def function(self, device: DeviceFunction, consts: Mapping[str, Any]) -> None:
        """Read a device function as the program's last; its arrays are global."""
        reader, params = self._entry(device, consts, {})
        with suppress(AlreadyReported):  # the errors are recorded
            self._specialise(device, reader.source, reader, params, (device,))

    def _entry(
        self, function: SourceFunction, consts: Mapping[str, Any], layouts: Mapping[str, ArrayLayout]
    ) -> tuple[StatementReader, list[ir.Param]]:
        """Return a reader with the parameters of a host-called function, and the parameters without Const."""
        reader = StatementReader(self, FunctionSource(function))
        params = []
        for arg, annotation in self._parameters(reader):
            name, span = arg.arg, reader.span(arg)
            if annotation is hints.Const:
                values = {**function.defaults, **consts}
                if name not in values:
                    raise CompileError([Diagnostic("compile", f"{name} is Const: launch needs its value", span)])
                reader.names[name] = of_python(values[name])
                continue
            try:
                type = self._parameter_type(reader, arg, annotation)
            except SourceError as error:
                self.report(error.span, error.message, *error.notes)
                reader.unresolved.add(name)
                continue
            if isinstance(type, Array) and type.space == "constant" and name in consts:
                table = replace(type, shape=(len(consts[name]),))
                reader.emit(ir.Alloc(name, table, consts[name], span))
                reader.names[name] = arrays.whole(name, table, span)
                continue
            if isinstance(type, Array) and type.space != "global":
                self.report(
                    span, f"a kernel's arrays are Global, {name} is {type.space}", "allocate it inside the kernel"
                )
            reader.launch_known.add_parameter(name)
            if isinstance(type, Array):
                params.append(ir.Param(name, type, span))
                array, more = arrays.parameter(name, type, layouts.get(name, FLAT), span)
                if isinstance(annotation, tuple) and annotation[0] is hints.TensorMap:
                    reader.names[name] = mbarriers.tensor(name, consts.get(name), span)
                else:
                    if name in consts:
                        self.report(span, f"{name} is no tensor map: give the array", "or write st.TensorMap[...]")
                    reader.names[name] = reader.swaps.declared(name, array, reader.emit, span)
                params += more
                for param in more:
                    reader.launch_known.add_parameter(param.name)
            elif isinstance(type, tuple):
                reader.names[name], more = struct_arrays.parameter(name, type[1], layouts, span)
                params += more
            else:
                params += self._scalars(reader, name, type, span)
        return reader, params

    def _scalars(
        self, reader: StatementReader, name: str, type: ValueType | records.RecordType, span: Span
    ) -> list[ir.Param]:
        """Return the parameters of a number, a vector, or the components of a tuple or a struct."""
        own = list(zip(records.leaf_names(name, type), records.leaf_types(type), strict=True))
        leaves = (
            arrays.whole(register, leaf, span) if isinstance(leaf, Array) else ir.Reg(register, leaf, span)
            for register, leaf in own
        )
        reader.names[name] = records.filled(type, leaves)
        if isinstance(type, records.RecordType) and not any(isinstance(leaf, Array) for _, leaf in own):
            reader.bundles[name] = name, type
            reader.assigned.add(name)
        return [ir.Param(register, leaf, span) for register, leaf in own]

    def call(self, caller: FunctionReader, node: ast.Call, device: DeviceFunction) -> Value:
        """Specialise a device function for the arguments of a call, and emit the Call."""
        span, source = caller.span(node), FunctionSource(device)
        if device in self._open:
            advice = "write a loop: the kernel language has no recursion"
            raise SourceError(span, f"{device.__name__} calls itself", advice)
        arguments = calls.bind_arguments(caller, node, device.__name__, inspect.signature(device.function))
        reader = StatementReader(self, source)
        parameters = self._parameters(reader)
        if reader.unresolved:
            raise AlreadyReported

        def read(name: str) -> tuple[Value, Span]:
            value = arguments[name]
            if isinstance(value, ast.expr):
                return caller.value(value), caller.span(value)
            return of_python(value), span  # a default

        binding = _Binding(caller, reader, [device])
        values = caller.together(*(partial(read, arg.arg) for arg, _ in parameters))
        named = zip(parameters, values, strict=True)
        caller.together(*(partial(self._pass, binding, *parameter, *value) for parameter, value in named))
        function = self._specialise(device, source, reader, binding.params, tuple(binding.key))
        args = tuple(binding.args)
        if function.result is None:
            caller.emit(ir.Let(None, ir.Call(function.name, args, None, span), span))
            return NOTHING
        call, type = ir.Call(function.name, args, function.result, span), self._types[function.name]
        if isinstance(type, records.RecordType):
            return records.called(caller, type, call, device.__name__, span)
        return caller.let(call, device.__name__, span)

    def _pass(self, binding: _Binding, arg: ast.arg, annotation: Any, value: Value, span: Span) -> None:
        """Bind a parameter to the value of its argument."""
        reader, name = binding.reader, arg.arg
        if annotation is hints.Const:
            reader.names[name] = self._const_argument(binding.caller, name, value, span)
            binding.key.append(exact(reader.names[name]))
            return
        if isinstance(annotation, tuple) and annotation[0] is hints.Array:
            space = _ANNOTATIONS[value.type.space] if isinstance(value, ArrayValue) else hints.Global
            annotation = (space, annotation[1])
        if isinstance(annotation, tuple) and annotation[0] is hints.TensorMap:
            raise SourceError(span, f"{name} is a tensor map: its boxes are copied in the kernel itself")
        type = self._parameter_type(reader, arg, annotation)
        if isinstance(type, Array):
            array = self._array_argument(name, type, value, span)
            reader.names[name] = actual = binding.pass_array(name, array, reader.span(arg), span)
            binding.key.extend([actual.type, arrays.layout_key(array)])
        elif isinstance(type, tuple):
            if not isinstance(value, StructArray) or value.type != type[1]:
                raise SourceError(span, f"{name} is an array of {type[1]}, this is {describe(value)}")
            fields = []
            for leaf, own in zip(struct_arrays.leaves(value), records.leaf_names(name, type[1]), strict=True):
                fields.append(binding.pass_array(own, leaf, reader.span(arg), span))
                binding.key.append(arrays.layout_key(leaf))
            binding.key.append(value.type)
            reader.names[name] = struct_arrays.renamed(struct_arrays.filled(value.type, fields), name)
        else:
            binding.params.extend(self._scalars(reader, name, type, reader.span(arg)))
            whole = records.converted(value, type, span, name)
            binding.args.extend(
                ir.ArrayRef(leaf.name, span) if isinstance(leaf, ArrayValue) else typing.expression(leaf, span)
                for leaf in records.leaves(whole)
            )
            binding.key.append(type)

    def _const_argument(self, caller: FunctionReader, name: str, value: Value, span: Span) -> Value:
        if isinstance(value, ir.Expr):
            if caller.waits_for_unrolling(value):
                raise NeedsConstants
            number = caller.number_of(value)
            value = value if number is None else Literal(number.value)
        if isinstance(value, Tuple):
            return Tuple(tuple(self._const_argument(caller, name, item, span) for item in value.items))
        if not isinstance(value, Literal):
            message = f"{name} is Const: its value must be known here, this is {describe(value)}"
            raise SourceError(span, message, "pass a number, a Const parameter, or the variable of an unrolled loop")
        return value

    def _array_argument(self, name: str, expected: Array, value: Value, span: Span) -> ArrayValue:
        if not isinstance(value, ArrayValue):
            raise SourceError(
                span, f"{name} is an array, this is {describe(value)}", "pass the array, without an index"
            )
        if (value.type.element, value.type.space) != (expected.element, expected.space):
            message = f"{name} is {expected.space} {expected.element}, this is {value.type.space} {value.type.element}"
            advice = f"annotate {name} with st.Array[{expected.element}], which takes every memory"
            other = f"pass an array of {expected.element}"
            raise SourceError(span, message, advice if value.type.element == expected.element else other)
        return value

    def _specialise(
        self,
        device: DeviceFunction,
        source: FunctionSource,
        reader: StatementReader,
        params: list[ir.Param],
        key: tuple[Any, ...],
    ) -> ir.Function:
        if key in self._specialised:
            existing = self._specialised[key]
            if existing is None:
                raise AlreadyReported
            return existing
        errors = len(self.diagnostics)
        self._open.append(device)
        try:
            self._read_body(device, source, reader)
        except SourceError as error:
            self.report(error.span, error.message, *error.notes)
        finally:
            self._open.pop()
        names = {f.name for f in self.functions}
        name, number = device.__name__, 2
        while name in names:
            name, number = f"{device.__name__}_{number}", number + 1
        result: Any = reader.result
        result = records.results(result) if isinstance(result, records.RecordType) else result
        body = reader.swaps.expanded(tuple(reader.body))
        function = ir.Function(name, tuple(params), body, result, reader.span(source.tree), host_function(reader))
        self._specialised[key] = function if errors == len(self.diagnostics) else None
        if self._specialised[key] is None:
            raise AlreadyReported
        self.functions.append(function)
        self._types[name] = reader.result
        return function

    def _read_body(self, device: DeviceFunction, source: FunctionSource, reader: StatementReader) -> None:
        errors, returns = len(self.diagnostics), source.tree.returns
        head = reader.span(source.tree)
        if returns is None:
            self.report(head, f"{device.__name__} must annotate what it returns", "write -> st.f32, or -> None")
        elif not (isinstance(returns, ast.Constant) and returns.value is None):
            reader.result = reader.any_type_of(returns)
        if reader.read_function(source.tree.body) and reader.result is not None and errors == len(self.diagnostics):
            advice = "write a return behind the last statement"
            self.report(head, f"{device.__name__} may end without returning {reader.result}", advice)

    def _parameters(self, reader: StatementReader) -> list[tuple[ast.arg, Any]]:
        """Return each parameter with the object (or pair) named by its annotation."""
        spec, parameters = reader.source.tree.args, []
        for extra in (spec.vararg, spec.kwarg):
            if extra is not None:
                self.report(
                    reader.span(extra), "`*` and `**` parameters are not in the kernel language", "name each parameter"
                )
                reader.unresolved.add(extra.arg)
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            try:
                if arg.annotation is None:
                    raise SourceError(
                        reader.span(arg), f"{arg.arg} needs a type", "write st.Global[st.f32], st.i32, st.Const ..."
                    )
                parameters.append((arg, reader.annotation(arg.annotation)))
            except SourceError as error:
                self.report(error.span, error.message, *error.notes)
                reader.unresolved.add(arg.arg)
        return parameters

    def _parameter_type(self, reader: StatementReader, arg: ast.arg, annotation: Any) -> Any:
        """Return a type, an array, or a `records.RecordType`."""
        if isinstance(annotation, records.RecordType):
            return annotation
        if is_struct(annotation):
            return reader.struct(annotation, reader.span(arg), arrays=not reader.source.of_kernel)
        if isinstance(annotation, tuple) and isinstance(annotation[1], records.StructType):
            if annotation[0] is not hints.Global:
                raise SourceError(reader.span(arg), "arrays of structs are in global memory", "write Global[...]")
            return annotation
        if isinstance(annotation, tuple) and annotation[0] in SPACES:
            return Array(annotation[1], None, SPACES[annotation[0]])
        assert arg.annotation is not None
        span = reader.span(arg.annotation)
        type = calls.value_type(self, annotation, span)
        if type is None:
            advice = type_advice(annotation, "write st.Global[st.f32], st.i32, st.Const ...")
            raise SourceError(span, f"{describe(of_python(annotation))} is not a type of the language", advice)
        return type


def specialise(
    kernel: Kernel,
    consts: Mapping[str, Any],
    real: Scalar | None = None,
    layouts: Mapping[str, ArrayLayout] | None = None,
    host_calls: bool = False,
) -> Specialised:
    """Return the program of `kernel` for these Const values, this type of Real and these array layouts. Arrays without
    a layout have one dimension and no gaps. host_calls: whether a statement may call a Python function.

    Raises CompileError with every error in the kernel and its device functions.
    """
    reader = Specialiser(real, host_calls)
    function = reader.kernel(kernel, consts, layouts or {})
    reader.check()
    program = ir.Program(function, _called(function, reader.functions))
    verify(program)
    externals = {(id(holder), name): (holder, name, value) for holder, name, value in reader.externals}
    return Specialised(program, list(externals.values()))


def specialise_function(device: DeviceFunction, consts: Mapping[str, Any]) -> ir.Program:
    """Return the program of a host-called device function, in the kernel's role; its arrays are global.

    Raises CompileError as `specialise` does.
    """
    reader = Specialiser(None)
    reader.function(device, consts)
    reader.check()
    *helpers, function = reader.functions
    program = ir.Program(function, tuple(helpers))
    verify(program)
    return program


def signature(kernel: Kernel) -> Signature:
    """Return the kernel's parameters. An undecided Real is f32.

    Raises CompileError with every error in the parameters, and those in the body that depend on no parameter.
    """
    from ..language.types import F32

    reader = Specialiser(F32)
    statements = StatementReader(reader, FunctionSource(kernel))
    params: dict[str, KernelParameter] = {}
    for arg, annotation in reader._parameters(statements):
        if annotation is hints.Const:
            params[arg.arg] = KernelParameter(None)
            continue
        reader.uses_real = False
        try:
            type = reader._parameter_type(statements, arg, annotation)
            if isinstance(annotation, tuple) and arg.annotation is not None:
                statements.annotation(arg.annotation)
        except SourceError as error:
            reader.report(error.span, error.message, *error.notes)
            continue
        if isinstance(type, tuple):
            type = struct_arrays.record(arg.arg, type[1])
        elif isinstance(type, records.RecordType):
            type = records.parameter(arg.arg, type)
        params[arg.arg] = KernelParameter(type, reader.uses_real)
    if reader.diagnostics:  # add those of the body that depend on no parameter
        spec = statements.source.tree.args
        statements.unresolved |= {arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        with suppress(SourceError, AlreadyReported, NeedsConstants):
            statements.read_function(statements.source.tree.body)
        raise CompileError(reader.diagnostics)
    return Signature(params)


def _called(kernel: ir.Function, functions: list[ir.Function]) -> tuple[ir.Function, ...]:
    """Return the functions reachable from a kernel; abandoned readings leave unreachable ones."""
    reachable: list[ir.Function] = []
    waiting = [kernel]
    while waiting:
        effects = (effect(stmt) for stmt in statements(waiting.pop().body))
        names = {call.function for call in effects if isinstance(call, ir.Call)}
        new = [f for f in functions if f.name in names and f not in reachable]
        reachable += new
        waiting += new
    return tuple(f for f in functions if f in reachable)


def _lookup(holder: Any, name: str) -> Any:
    return holder.lookup(name) if isinstance(holder, FunctionSource) else getattr(holder, name, MISSING)


__all__ = ["Host", "Specialised", "signature", "specialise"]
