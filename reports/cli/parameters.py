"""A command from a function: its parameters' annotations are the options and arguments, its docstring is the help."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click


@dataclass(frozen=True)
class Option:
    """An option of a command. names: as on the command line; the parameter's own name if none are given.

    min, max: bounds of a number; above, below: bounds that it may not reach. Every number has two, and is finite.
    """

    names: tuple[str, ...] = ()
    help: str = ""
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None


LEAST_SIZE, MOST_SIZE = 1 << 26, 1 << 44


class Size(int):
    """Bytes, on the command line a number and perhaps K, M, G or T."""

    def __str__(self) -> str:
        power = max((p for p in range(5) if self % 1024**p == 0 and self), default=0)
        return f"{self // 1024**power}{' KMGT'[power].strip()}"


@dataclass(frozen=True)
class Argument:
    """An argument of a command, which may be left out where the parameter has a default."""

    metavar: str
    help: str


ARGUMENTS = object()
"""Annotates the arguments of a Program."""


@dataclass(frozen=True)
class Program:
    """The argument that names a program. What follows it belongs to the program and is given to the next parameter, a list.

    is_program: whether a name stands for a program; what follows any other one are options as before it.
    """

    metavar: str
    help: str
    is_program: Callable[[str], bool]


def command(function: Callable[..., int]) -> click.Command:
    """The command that calls the function with what the command line holds, and gives the exit code.

    Parameters are Annotated with an Option, an Argument or a Program; their types are str, int, float, bool, Path, a
    StrEnum, Size, each of these or None, or a list of them or None.
    """
    hints = get_type_hints(function, include_extras=True)
    defaults = inspect.signature(function).parameters
    parameters = [_parameter(name, hints[name], given.default) for name, given in defaults.items()]
    described = [
        (parameter, hints[name].__metadata__[0].help)
        for name, parameter in zip(defaults, parameters, strict=True)
        if isinstance(hints[name].__metadata__[0], Argument | Program)
    ]
    programs = [(name, what) for name in defaults if isinstance(what := hints[name].__metadata__[0], Program)]
    return _Command(
        function.__name__,
        callback=function,
        params=parameters,
        help=inspect.getdoc(function),
        described=described,
        program=programs[0] if programs else None,
    )


class _Command(click.Command):
    """A command whose help lists its arguments too, and that leaves a program the arguments that come after it."""

    def __init__(
        self, *given: Any, described: list[tuple[click.Parameter, str]], program: tuple[str, Program] | None, **how: Any
    ) -> None:
        super().__init__(*given, **how)
        self.described, self.program = described, program

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.program is not None:
            parameter, program = self.program
            ctx.allow_interspersed_args = False
            named = self.make_parser(ctx).parse_args(list(args))[0].get(parameter)
            ctx.allow_interspersed_args = not (isinstance(named, str) and program.is_program(named))
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.described:
            with formatter.section("Arguments"):
                formatter.write_dl([(one.make_metavar(ctx), help) for one, help in self.described])
        super().format_options(ctx, formatter)


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    assert get_origin(hint) is Annotated, f"{name} is annotated with nothing"
    kind, what = hint.__origin__, hint.__metadata__[0]
    if isinstance(kind, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not types.NoneType)
    several = get_origin(kind) is list
    if several:
        (kind,) = get_args(kind)
    if what is ARGUMENTS:
        return click.Argument([name], type=click.UNPROCESSED, nargs=-1, metavar="[ARGUMENTS]...")
    settings: dict[str, Any] = {"required": True} if default is inspect.Parameter.empty else {"default": default}
    if isinstance(what, Argument | Program):
        metavar = what.metavar if "required" in settings else f"[{what.metavar}]"
        return click.Argument([name], type=_type(kind), metavar=metavar, **settings)
    names = what.names or (f"--{name.replace('_', '-')}",)
    if kind is bool:
        return click.Option([*names, name], is_flag=True, help=what.help, **settings)
    if several:
        return click.Option([*names, name], type=_type(kind), multiple=True, metavar=what.metavar, help=what.help)
    settings["show_default"] = settings.get("default") is not None
    value = _number(kind, what) if kind in (int, float) else _type(kind)
    return click.Option([*names, name], type=value, metavar=what.metavar, help=what.help, **settings)


def _type(kind: type) -> click.ParamType[Any]:
    if issubclass(kind, StrEnum):
        return _Choice(kind)
    if kind is Size:
        return _Size()
    if kind is Path:
        return click.Path(path_type=Path)
    assert kind is str, f"{kind.__name__} is no type of an argument"
    return click.STRING


def _number(kind: type, option: Option) -> click.ParamType[Any]:
    """Numbers of a type within the bounds of their option; nan is within none."""
    least = option.min if option.above is None else option.above
    most = option.max if option.below is None else option.below
    assert least is not None and most is not None, f"{option.names or option.help}: a number has two bounds"
    ends = {"min_open": option.above is not None, "max_open": option.below is not None}
    return (_Whole if kind is int else _Finite)(kind(least), kind(most), **ends)


class _Whole(click.IntRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and len(value) > 30:
            self.fail(f"{value[:30]!r}... is longer than any number here.", param, ctx)
        return super().convert(value, param, ctx)


class _Finite(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


class _Choice(click.ParamType[Any]):
    """The values of an enumeration."""

    name = "choice"

    def __init__(self, kind: type[StrEnum]) -> None:
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        choices = "|".join(self.kind)
        return f"{{{choices}}}" if isinstance(param, click.Argument) else f"[{choices}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in list(self.kind):
            return self.kind(value)
        self.fail(f"{value!r} is not one of {', '.join(map(repr, map(str, self.kind)))}.", param, ctx)


class _Size(click.ParamType[Any]):
    """A number of bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, Size):
            return value
        found = re.fullmatch(r"(\d{1,9})([KMGT]?)(?:i?B)?", value.upper(), re.ASCII)
        size = Size(int(found[1]) * 1024 ** " KMGT".index(found[2] or " ")) if found else Size(0)
        if not LEAST_SIZE <= size <= MOST_SIZE:
            self.fail(
                f"{value!r} is not a size from {Size(LEAST_SIZE)} to {Size(MOST_SIZE)}, such as 512M or 4G.", param, ctx
            )
        return size
