"""A command from a function: its parameters' annotations are the options and arguments, its docstring is the help."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click


@dataclass(frozen=True)
class Option:
    """An option of a command. names: as on the command line; the parameter's own name if none are given."""

    names: tuple[str, ...] = ()
    help: str = ""
    metavar: str | None = None
    min: int | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of a command, which may be left out where the parameter has a default."""

    metavar: str
    help: str


def command(function: Callable[..., int]) -> click.Command:
    """The command that calls the function with what the command line holds, and gives the exit code.

    Parameters are Annotated with an Option or an Argument; their types are str, int, float, bool, Path, a StrEnum, each
    of these or None, or a list of them or None.
    """
    hints = get_type_hints(function, include_extras=True)
    defaults = inspect.signature(function).parameters
    parameters = [_parameter(name, hints[name], given.default) for name, given in defaults.items()]
    described = [
        (parameter, hints[name].__metadata__[0].help)
        for name, parameter in zip(defaults, parameters, strict=True)
        if isinstance(hints[name].__metadata__[0], Argument)
    ]
    return _Command(
        function.__name__, callback=function, params=parameters, help=inspect.getdoc(function), described=described
    )


class _Command(click.Command):
    """A command whose help lists its arguments too."""

    def __init__(self, *given: Any, described: list[tuple[click.Parameter, str]], **how: Any) -> None:
        super().__init__(*given, **how)
        self.described = described

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.described:
            with formatter.section("Arguments"):
                formatter.write_dl([(one.make_metavar(ctx), help) for one, help in self.described])
        super().format_options(ctx, formatter)


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    assert get_origin(hint) is Annotated, f"{name} has neither an Option nor an Argument"
    kind, what = hint.__origin__, hint.__metadata__[0]
    if isinstance(kind, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not types.NoneType)
    several = get_origin(kind) is list
    if several:
        (kind,) = get_args(kind)
    settings: dict[str, Any] = {"required": True} if default is inspect.Parameter.empty else {"default": default}
    if isinstance(what, Argument):
        metavar = what.metavar if "required" in settings else f"[{what.metavar}]"
        return click.Argument([name], type=_type(kind, None), metavar=metavar, **settings)
    names = what.names or (f"--{name.replace('_', '-')}",)
    if kind is bool:
        return click.Option([*names, name], is_flag=True, help=what.help, **settings)
    if several:
        return click.Option([*names, name], type=_type(kind, None), multiple=True, metavar=what.metavar, help=what.help)
    settings["show_default"] = settings.get("default") is not None
    return click.Option([*names, name], type=_type(kind, what.min), metavar=what.metavar, help=what.help, **settings)


def _type(kind: type, least: int | None) -> click.ParamType[Any]:
    if issubclass(kind, StrEnum):
        return _Choice(kind)
    if kind is Path:
        return click.Path(path_type=Path)
    if least is not None:
        return click.IntRange(min=least)
    return {str: click.STRING, int: click.INT, float: click.FLOAT}[kind]


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
