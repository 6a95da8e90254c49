"""Click commands from annotated functions: parameters and option dataclasses become arguments and options."""

import dataclasses
import inspect
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click
from simtbed.escaping import printable

from ..printing import print_message


@dataclass(frozen=True)
class Option:
    """An option of a command.

    names: names on the command line, by default the name of the parameter.
    min, max: inclusive bounds of a number; above, below: exclusive bounds. Every number has a lower and an upper bound.
    """

    names: tuple[str, ...] = ()
    help: str = ""
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None


MIN_SIZE, MAX_SIZE = 1 << 26, 1 << 44


class Size(int):
    """A number of bytes, written on the command line with an optional suffix K, M, G or T."""

    def __str__(self) -> str:
        power = max((p for p in range(5) if self % 1024**p == 0 and self), default=0)
        return f"{self // 1024**power}{' KMGT'[power].strip()}"


@dataclass(frozen=True)
class Argument:
    """A positional argument, optional if the parameter has a default."""

    metavar: str
    help: str


ARGUMENTS, ARGUMENTS_NAME = object(), "arguments"
"""Annotation and name of the parameter that receives the arguments of a Program."""


@dataclass(frozen=True)
class Program:
    """The argument that names a program. The arguments after it belong to the program.

    is_program: whether a name denotes a program. After any other name, options of the command are still parsed.
    is_built: whether it denotes a program with words of its own before a --.
    """

    metavar: str
    help: str
    is_program: Callable[[str], bool]
    is_built: Callable[[str], bool]


@dataclass(frozen=True)
class _Field:
    """A parameter of a function or a field of an options dataclass. group: the dataclass to construct, if any."""

    name: str
    hint: Any
    default: Any
    group: type | None = None

    @property
    def annotation(self) -> Any:
        return self.hint.__metadata__[0]


def command(function: Callable[..., int]) -> click.Command:
    """Return the command that calls the function with the parsed command line; its result is the exit code.

    A parameter is Annotated with an Option, an Argument or a Program, or its type is a dataclass with such fields, nested
    dataclasses included. Types: str, int, float, bool, Path, a StrEnum, Size, each of these or None, or a list of them
    or None.
    """
    fields = list(_fields_of_function(function))
    parameters = list(_parameters(fields))
    program = next(((name, annotation) for name, annotation, _ in parameters if isinstance(annotation, Program)), None)
    return _Command(
        function.__name__,
        callback=lambda **values: function(**_grouped(fields, values)),
        params=[parameter for _, _, parameter in parameters],
        help=inspect.getdoc(function),
        documented=[(p, note.help) for _, note, p in parameters if isinstance(note, Argument | Program)],
        program=program,
    )


def _fields_of_function(function: Callable[..., int]) -> Iterator[_Field]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
        yield _field(name, hints[name], default)


def _fields_of_class(group: Any) -> Iterator[_Field]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        yield _field(field.name, hints[field.name], field.default)


def _field(name: str, hint: Any, default: Any) -> _Field:
    return _Field(name, hint, default, hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None)


def _parameters(fields: list[_Field]) -> Iterator[tuple[str, Any, click.Parameter]]:
    """Name, annotation and Click parameter of each field, in order; groups are flattened."""
    for field in fields:
        if field.group is not None:
            yield from _parameters(list(_fields_of_class(field.group)))
        else:
            yield field.name, field.annotation, _parameter(field)


def _grouped(fields: list[_Field], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by field, those of groups as dataclasses."""
    return {
        field.name: values[field.name]
        if field.group is None
        else field.group(**_grouped(list(_fields_of_class(field.group)), values))
        for field in fields
    }


class _Command(click.Command):
    """A command that documents its arguments and passes the arguments after a program to the program."""

    def __init__(
        self,
        *positional: Any,
        documented: list[tuple[click.Parameter, str]],
        program: tuple[str, Program] | None,
        **settings: Any,
    ) -> None:
        super().__init__(*positional, **settings)
        self.documented, self.program = documented, program

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.program is not None:
            parameter, program = self.program
            ctx.allow_interspersed_args = False
            values, _, _ = self.make_parser(ctx).parse_args(list(args))
            target = values.get(parameter)
            ctx.allow_interspersed_args = not (isinstance(target, str) and program.is_program(target))
            if not ctx.allow_interspersed_args:
                own = values.get(ARGUMENTS_NAME)
                if not program.is_built(str(target)):
                    args = self._without_separator(ctx, args, own if isinstance(own, tuple) else ())
        return super().parse_args(ctx, args)

    def _without_separator(self, ctx: click.Context, args: list[str], own: Sequence[str]) -> list[str]:
        """Return a command line without a -- after its program. Print a note for each option of this command among the program's
        arguments; none if -- is before them or before the program.

        own: the arguments of the program, the end of `args`.
        """
        end = len(args) - len(own)
        if own[:1] == ("--",):
            return [*args[:end], *own[1:]]
        names = {name for parameter in self.get_params(ctx) for name in parameter.opts if name.startswith("-")}
        for word in () if args[end - 2 : end - 1] == ["--"] else own:
            if (name := word.partition("=")[0]) in names:
                target = args[end - 1]
                print_message(
                    printable(
                        f"simtbed: note: {name} is an argument of {target}: write options of simtbed before {target}, "
                        f"or -- after it for no note"
                    )
                )
        return args

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.obj is not None:
            ctx.obj()  # `begin` of `app.run`
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.documented:
            with formatter.section("Arguments"):
                formatter.write_dl([(parameter.make_metavar(ctx), help) for parameter, help in self.documented])
        super().format_options(ctx, formatter)


def _parameter(field: _Field) -> click.Parameter:
    name, hint = field.name, field.hint
    assert get_origin(hint) is Annotated, f"{name} has no annotation"
    kind, annotation = hint.__origin__, field.annotation
    if isinstance(kind, types.UnionType):
        (kind,) = (member for member in get_args(kind) if member is not types.NoneType)
    multiple = get_origin(kind) is list
    if multiple:
        (kind,) = get_args(kind)
    if annotation is ARGUMENTS:
        return click.Argument([ARGUMENTS_NAME], type=click.UNPROCESSED, nargs=-1, metavar="[ARGUMENTS]...")
    settings: dict[str, Any] = {"required": True} if field.default is MISSING else {"default": field.default}
    if isinstance(annotation, Argument | Program):
        metavar = annotation.metavar if "required" in settings else f"[{annotation.metavar}]"
        return click.Argument([name], type=_type(kind), metavar=metavar, **settings)
    names = annotation.names or (f"--{name.replace('_', '-')}",)
    settings |= {"help": annotation.help}
    if kind is bool:
        return click.Option([*names, name], is_flag=True, **settings)
    settings["metavar"] = annotation.metavar
    if multiple:
        del settings["default"]
        return click.Option([*names, name], type=_type(kind), multiple=True, **settings)
    settings["show_default"] = settings.get("default") is not None
    value = _number(kind, annotation) if kind in (int, float) else _type(kind)
    return click.Option([*names, name], type=value, **settings)


def _type(kind: type) -> click.ParamType[Any]:
    if issubclass(kind, StrEnum):
        return _Choice(kind)
    if kind is Size:
        return _Size()
    if kind is Path:
        return _Path(path_type=Path)
    assert kind is str, f"{kind.__name__} is not a type of an argument"
    return _Text()


class _Text(click.types.StringParamType):
    """A text. An empty one is the value of an unset variable of a shell."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the text is empty.", param, ctx)
        return super().convert(value, param, ctx)


class _Path(click.Path):
    """A path. `pathlib` ignores a separator at the end; such a name refers to a folder, and no file is read or written by it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty.", param, ctx)
        is_output = isinstance(param, click.Option)  # an argument may name a folder to create
        is_folder_name = isinstance(value, str) and value.endswith(("/", "/."))
        if is_folder_name and not os.path.isdir(value) and (is_output or os.path.lexists(Path(value))):
            self.fail(f"{value!r} is no folder; a file name has no '/' at the end.", param, ctx)
        return super().convert(value, param, ctx)


def _number(kind: type, option: Option) -> click.ParamType[Any]:
    """Return the type of numbers within the bounds of an option; NaN is outside."""
    low = option.min if option.above is None else option.above
    high = option.max if option.below is None else option.below
    assert low is not None and high is not None, f"{option.names or option.help}: a number needs two bounds"
    ends = {"min_open": option.above is not None, "max_open": option.below is not None}
    return (_Integer if kind is int else _Finite)(kind(low), kind(high), **ends)


class _Integer(click.IntRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and len(value) > 30:
            self.fail(f"{value[:30]!r}... has more than 30 characters.", param, ctx)
        return super().convert(value, param, ctx)


class _Finite(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


class _Choice(click.ParamType[Any]):
    """The values of an enumeration, in upper or lower case."""

    name = "choice"

    def __init__(self, kind: type[StrEnum]) -> None:
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        choices = "|".join(self.kind)
        return f"{{{choices}}}" if isinstance(param, click.Argument) else f"[{choices}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        for choice in self.kind:
            if choice.casefold() == str(value).casefold():
                return choice
        self.fail(f"{value!r} is not one of {', '.join(map(repr, map(str, self.kind)))}.", param, ctx)


class _Size(click.ParamType[Any]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, Size):
            return value
        match = re.fullmatch(r"(\d{1,9})([KMGT]?)(?:i?B)?", value.upper(), re.ASCII)
        size = Size(int(match[1]) * 1024 ** " KMGT".index(match[2] or " ")) if match else Size(0)
        if not MIN_SIZE <= size <= MAX_SIZE:
            self.fail(
                f"{value!r} is not a size from {Size(MIN_SIZE)} to {Size(MAX_SIZE)}, such as 512M or 4G.", param, ctx
            )
        return size
