"""Specialisation: a kernel and the device functions it calls, as one IR program for given constants and types."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.spec import verify
from ..language import hints
from ..language.functions import DeviceFunction, Kernel, SourceFunction
from ..language.types import Array, Scalar, Space
from ..language.types import Value as ValueType
from ..span import Span
from . import calls, typing
from .protocols import FunctionReader
from .signature import Parameter, Signature
from .source import MISSING, FunctionSource
from .statements import Statements
from .values import AlreadyReported, ArrayValue, Host, Literal, SourceError, Tuple, Value, describe, of_python

SPACES: dict[type, Space] = {
    hints.Global: "global", hints.Shared: "shared", hints.Local: "local",
    hints.Constant: "constant", hints.Registers: "register",
}  # fmt: skip
_ANNOTATIONS = {space: word for word, space in SPACES.items()}


@dataclass
class Specialised:
    """A program, and the external values it was made from. It is stale when one of them has changed."""

    program: ir.Program
    externals: list[tuple[Any, str, Any]] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        return any(_find(holder, name) is not value for holder, name, value in self.externals)


class Specialiser:
    """Reads the functions of one program and collects their errors."""

    def __init__(self, real: Scalar | None) -> None:
        self.real = real
        self.uses_real = False
        self.diagnostics: list[Diagnostic] = []
        self.functions: list[ir.Function] = []
        self.externals: list[tuple[Any, str, Any]] = []
        self._done: dict[tuple[Any, ...], ir.Function | None] = {}
        self._open: list[DeviceFunction] = []

    # -------------------------------------------------------------- services for function readers
    def report(self, span: Span, message: str, *notes: str) -> None:
        found = Diagnostic("compile", message, span, notes)
        if found not in self.diagnostics:
            self.diagnostics.append(found)

    def check(self) -> None:
        """Raise CompileError if anything was refused."""
        if self.diagnostics:
            raise CompileError(sorted(self.diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column)))

    def external(self, source: FunctionSource, name: str) -> Any:
        """A name from outside the function; remembered, so that a later change is noticed."""
        return self._remember(source, name)

    def attribute(self, module: ModuleType, name: str) -> Any:
        return self._remember(module, name)

    def _remember(self, holder: Any, name: str) -> Any:
        value = _find(holder, name)
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
    def kernel(self, kernel: Kernel, consts: Mapping[str, Any]) -> ir.Function:
        reader, params = self._entry(kernel, consts)
        tree = reader.source.tree
        if tree.returns is not None and not (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
            self.report(reader.span(tree.returns), "a kernel returns nothing", "write -> None")
        reader.read(tree.body)
        return ir.Function(kernel.__name__, tuple(params), tuple(reader.body), None, reader.span(tree))

    def function(self, device: DeviceFunction, consts: Mapping[str, Any]) -> None:
        """A device function as the last of the program's, its arrays global."""
        reader, params = self._entry(device, consts)
        with suppress(AlreadyReported):  # the errors are noted
            self._specialise(device, reader.source, reader, params, (device,))

    def _entry(self, function: SourceFunction, consts: Mapping[str, Any]) -> tuple[Statements, list[ir.Param]]:
        """A reader that knows the parameters of a function that the host calls, and those that are not Const."""
        reader = Statements(self, FunctionSource(function))
        params = []
        for arg, annotation in self._parameters(reader):
            name, span = arg.arg, reader.span(arg)
            if annotation is hints.Const:
                if name not in consts:
                    raise CompileError([Diagnostic("compile", f"{name} is Const: launch needs its value", span)])
                reader.names[name] = of_python(consts[name])
                continue
            try:
                type = self._parameter_type(reader, arg, annotation)
            except SourceError as error:
                self.report(error.span, error.message, *error.notes)
                reader.unresolved.add(name)
                continue
            if isinstance(type, Array) and type.space != "global":
                self.report(
                    span, f"a kernel's arrays are Global, {name} is {type.space}", "allocate it inside the kernel"
                )
            reader.names[name] = ArrayValue(name, type) if isinstance(type, Array) else ir.Reg(name, type, span)
            params.append(ir.Param(name, type, span))
        return reader, params

    def call(self, caller: FunctionReader, node: ast.Call, device: DeviceFunction) -> Value:
        """A call of a device function: the function specialised for these arguments, and the Call emitted."""
        span, source = caller.span(node), FunctionSource(device)
        if device in self._open:
            raise SourceError(
                span, f"{device.__name__} calls itself", "a loop can do it; GPUs have no room for recursion"
            )
        try:
            bound = inspect.signature(device.function).bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
        except TypeError as error:
            raise SourceError(span, f"{device.__name__}: {error}") from None
        reader = Statements(self, source)
        params: list[ir.Param] = []
        args: list[ir.Expr | ir.ArrayRef] = []
        key: list[Any] = [device]
        for arg, annotation in self._parameters(reader):
            given = bound.arguments.get(arg.arg)
            if given is None:
                raise SourceError(reader.span(arg), "default values are not in the kernel language")
            value, where = caller.value(given), caller.span(given)
            if annotation is hints.Const:
                if not isinstance(value, Literal | Tuple):
                    raise SourceError(
                        where, f"{arg.arg} is Const: its value must be known here, this is {describe(value)}"
                    )
                reader.names[arg.arg] = value
                key.append(value)
                continue
            if isinstance(annotation, tuple) and annotation[0] is hints.Array:
                annotation = (
                    _ANNOTATIONS[value.type.space] if isinstance(value, ArrayValue) else hints.Global,
                    annotation[1],
                )
            type = self._parameter_type(reader, arg, annotation)
            if isinstance(type, Array):
                actual = self._array_argument(arg.arg, type, value, where)
                reader.names[arg.arg] = ArrayValue(arg.arg, actual)
                params.append(ir.Param(arg.arg, actual, reader.span(arg)))
                assert isinstance(value, ArrayValue)
                args.append(ir.ArrayRef(value.name, where))
                key.append(actual)
            else:
                reader.names[arg.arg] = ir.Reg(arg.arg, type, reader.span(arg))
                params.append(ir.Param(arg.arg, type, reader.span(arg)))
                args.append(typing.converted(value, type, where, arg.arg))
        function = self._specialise(device, source, reader, params, tuple(key))
        if function.result is None:
            caller.emit(ir.Let(None, ir.Call(function.name, tuple(args), None, span), span))
            return calls.NOTHING
        return caller.let(ir.Call(function.name, tuple(args), function.result, span), device.__name__, span)

    def _array_argument(self, name: str, wanted: Array, value: Value, span: Span) -> Array:
        if not isinstance(value, ArrayValue):
            raise SourceError(span, f"{name} is an array, this is {describe(value)}")
        if len(value.strides) != 1 and value.type.shape is None:
            raise SourceError(
                span,
                f"{name} would lose its stride",
                "pass the array itself, and call st.matrix in the device function",
            )
        if (value.type.element, value.type.space) != (wanted.element, wanted.space):
            message = f"{name} is {wanted.space} {wanted.element}, this is {value.type.space} {value.type.element}"
            raise SourceError(span, message)
        return Array(value.type.element, value.type.shape and (value.type.length or 0,), value.type.space)

    def _specialise(
        self,
        device: DeviceFunction,
        source: FunctionSource,
        reader: Statements,
        params: list[ir.Param],
        key: tuple[Any, ...],
    ) -> ir.Function:
        if key in self._done:
            done = self._done[key]
            if done is None:
                raise AlreadyReported
            return done
        self._open.append(device)
        errors = len(self.diagnostics)
        returns = source.tree.returns
        if returns is None:
            self.report(
                reader.span(source.tree), f"{device.__name__} must annotate what it returns", "write -> f32, or -> None"
            )
        elif not (isinstance(returns, ast.Constant) and returns.value is None):
            reader.result = reader.type_of(returns)
        if reader.read(source.tree.body) and reader.result is not None and errors == len(self.diagnostics):
            self.report(reader.span(source.tree), f"{device.__name__} may end without returning {reader.result}")
        self._open.pop()
        taken = {f.name for f in self.functions}
        name, number = device.__name__, 2
        while name in taken:
            name, number = f"{device.__name__}_{number}", number + 1
        function = ir.Function(name, tuple(params), tuple(reader.body), reader.result, reader.span(source.tree))
        self._done[key] = function if errors == len(self.diagnostics) else None
        if self._done[key] is None:
            raise AlreadyReported
        self.functions.append(function)
        return function

    def _parameters(self, reader: Statements) -> list[tuple[ast.arg, Any]]:
        """Each parameter with the object (or pair) its annotation names."""
        spec, found = reader.source.tree.args, []
        for extra in (spec.vararg, spec.kwarg):
            if extra is not None:
                self.report(reader.span(extra), "`*` and `**` parameters are not in the kernel language")
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            try:
                if arg.annotation is None:
                    raise SourceError(reader.span(arg), f"{arg.arg} needs a type", "write Global[f32], i32, Const ...")
                found.append((arg, reader.annotation(arg.annotation)))
            except SourceError as error:
                self.report(error.span, error.message, *error.notes)
                reader.unresolved.add(arg.arg)
        return found

    def _parameter_type(self, reader: Statements, arg: ast.arg, annotation: Any) -> ValueType | Array:
        if isinstance(annotation, tuple) and annotation[0] in SPACES:
            return Array(annotation[1], None, SPACES[annotation[0]])
        assert arg.annotation is not None
        span = reader.span(arg.annotation)
        type = calls.value_type(self, annotation, span)
        if type is None:
            advice = (
                "write i32 or i64"
                if annotation is int
                else "write f32 or f64"
                if annotation is float
                else "write Global[f32], i32, Const ..."
            )
            raise SourceError(span, f"{describe(of_python(annotation))} is not a type of the language", advice)
        return type


def specialise(kernel: Kernel, consts: Mapping[str, Any], real: Scalar | None = None) -> Specialised:
    """The program of `kernel` for these Const values and, where it uses Real, this float type.

    Raises CompileError with every mistake found in the kernel and the functions it calls.
    """
    reader = Specialiser(real)
    function = reader.kernel(kernel, consts)
    reader.check()
    program = ir.Program(function, tuple(reader.functions))
    verify(program)
    externals = {(id(holder), name): (holder, name, value) for holder, name, value in reader.externals}
    return Specialised(program, list(externals.values()))


def specialise_function(device: DeviceFunction, consts: Mapping[str, Any]) -> ir.Program:
    """The program of a device function that the host calls, in the kernel's place; its arrays are global.

    Raises CompileError as `specialise` does.
    """
    reader = Specialiser(None)
    reader.function(device, consts)
    reader.check()
    *others, function = reader.functions
    program = ir.Program(function, tuple(others))
    verify(program)
    return program


def signature(kernel: Kernel) -> Signature:
    """The kernel's parameters, without reading its body. Real stands for f32 where it is undecided."""
    from ..language.types import F32

    reader = Specialiser(F32)
    statements = Statements(reader, FunctionSource(kernel))
    params: dict[str, Parameter] = {}
    for arg, annotation in reader._parameters(statements):
        if annotation is hints.Const:
            params[arg.arg] = Parameter(None)
            continue
        reader.uses_real = False
        try:
            type = reader._parameter_type(statements, arg, annotation)
            if isinstance(annotation, tuple) and arg.annotation is not None:
                statements.annotation(arg.annotation)
        except SourceError as error:
            reader.report(error.span, error.message, *error.notes)
            continue
        params[arg.arg] = Parameter(type, reader.uses_real)
    if reader.diagnostics:
        raise CompileError(reader.diagnostics)
    return Signature(params)


def _find(holder: Any, name: str) -> Any:
    return holder.lookup(name) if isinstance(holder, FunctionSource) else getattr(holder, name, MISSING)


__all__ = ["Host", "Specialised", "signature", "specialise"]
