"""Arguments of a launch by the program's own parameters: arrays with their forms, numbers, structs and constants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from ..checked import shown
from ..errors import LaunchError
from ..frontend.constants import is_record, is_struct
from ..frontend.signature import KernelParameter, RecordArrayParameter, RecordParameter, Signature
from ..ir.limits import over_capacity
from ..ir.names import Name
from ..language.types import COMPLEX, FLOATS, SCALARS, Array, Scalar, Vector, from_dtype
from .array_forms import ArrayForm, as_elements, fill_of_elements, real_view, struct_field
from .arrays import MAX_DIMENSIONS, Buffer, DeviceArray, NewArray, checked_array, is_zero, named, split
from .foreign_arrays import as_number
from .poison import poison, poison_record
from .refusals import Refusals
from .scalars import checked_scalar
from .specialisation import AnyKernel, Specialisation, specialisation_of


@dataclass
class Bindings:
    """The program's arguments, collected parameter by parameter; fields as in `Request`."""

    arrays: dict[str, Buffer] = field(default_factory=dict)
    filled: dict[str, Buffer] = field(default_factory=dict)
    forms: dict[str, ArrayForm] = field(default_factory=dict)
    numbers: dict[str, np.generic] = field(default_factory=dict)
    structs: dict[str, Buffer] = field(default_factory=dict)
    owners: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def bind_array(self, name: str, element: Scalar | Vector, argument: Any, accepts: tuple[str, ...] = ()) -> None:
        array, own, fill = accessed_memory(name, element, argument, accepts)
        form = ArrayForm.for_array(Name.parse(name).user, array, element)
        self.forms[name] = form if array is own else replace(form, own=(own.dtype, own.shape))
        self.arrays[name] = form.flat(array)
        if fill is not None:
            self.filled[name] = fill
            if not is_zero(fill):
                self.arrays[name] = np.broadcast_to(fill, self.arrays[name].shape)
        self.numbers |= form.numbers(name)

    def bind_structs(self, name: str, type: RecordArrayParameter, argument: Any) -> None:
        self.structs[name] = _structs(name, type, argument)
        fields: list[tuple[tuple[str, ...], Scalar]] = []
        for own, path, kind in type.components:
            assert isinstance(kind, Scalar)
            self.forms[own], self.arrays[own] = struct_field(name, self.structs[name], path, kind)
            self.numbers |= self.forms[own].numbers(own)
            self.owners[own] = (name, path)
            fields.append((path, kind))
            if isinstance(argument, NewArray):
                self.filled[own] = np.zeros((), kind.dtype) if argument.readable else poison(kind)
        if isinstance(argument, NewArray) and not argument.readable:
            record = poison_record(self.structs[name].dtype, fields)
            self.structs[name] = np.broadcast_to(record, argument.shape)

    def new_arrays(self, args: Mapping[str, Any]) -> dict[str, NewArray]:
        """Return the arrays created by the launch, by the program's own parameters."""
        new = {n: value for n, value in args.items() if isinstance(value, NewArray) and n not in self.structs}
        return new | {own: args[n] for own, (n, _) in self.owners.items() if isinstance(args[n], NewArray)}


def bind_arguments(
    kernel: AnyKernel,
    signature: Signature,
    args: Mapping[str, Any],
    types: Any,
    host_calls: bool,
    refusals: Refusals,
) -> tuple[Bindings, Specialisation]:
    """Return the arguments by the program's own parameters, and the specialised kernel. Raises the refusals."""
    parameters = {name: parameter for name, parameter in signature.parameters.items() if name in args}
    consts: dict[str, Any] = {}
    real, bindings, is_typed = None, Bindings(), False
    with refusals.collected():
        real = _real(kernel, parameters, args, types)
        is_typed = len(parameters) == len(signature.parameters)
    for name, parameter in parameters.items():
        type, before = parameter.type, len(refusals.errors)
        with refusals.collected():
            if type is None:
                consts[name] = _const(name, args[name])
            elif isinstance(type, Array) and type.space == "constant":
                consts[name] = _constant_table(name, type, args[name])
            elif isinstance(type, Array):
                element = real if parameter.real and real is not None else type.element
                bindings.bind_array(name, element, args[name], parameter.accepts)
            elif isinstance(type, RecordArrayParameter):
                bindings.bind_structs(name, type, args[name])
            elif isinstance(type, RecordParameter):
                bindings.numbers |= record_numbers(name, type, args[name])
            else:
                kind = real if parameter.real and real is not None else type
                bindings.numbers[name] = checked_scalar(name, kind, args[name])
        if len(refusals.errors) > before:
            is_array = isinstance(type, Array) and type.space == "global"
            is_typed = is_typed and (is_array or isinstance(type, Scalar | RecordParameter))
            if is_array:
                bindings.forms[name] = _assumed_form(name, type.element, args[name])  # type: ignore[union-attr]
    layouts = {name: form.layout for name, form in bindings.forms.items()}
    specialise = partial(specialisation_of, kernel, consts, real, layouts, host_calls)
    refusals.raise_all((lambda: specialise().summary) if is_typed else None)
    return bindings, specialise()


def _assumed_form(name: str, element: Scalar | Vector, argument: Any) -> ArrayForm:
    """Return the form of a refused array, with its number of dimensions: the kernel compiles for it."""
    lanes = split(element)[1]
    dimensions = len(getattr(argument, "shape", ())) - (lanes > 0 and not isinstance(argument, NewArray))
    shape = (1,) * min(max(dimensions, 1), MAX_DIMENSIONS)
    return ArrayForm.for_array(name, np.empty((*shape, *([lanes] if lanes else [])), split(element)[0].dtype), element)


def require_names(kernel: AnyKernel, signature: Signature, args: Mapping[str, Any]) -> None:
    missing = [name for name in signature.parameters if name not in args]
    extra = [name for name in args if name not in signature.parameters]
    if missing:
        beyond = f", and has no parameter {', '.join(map(str, extra))}" if extra else ""
        raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}{beyond}")
    if extra:
        raise LaunchError(
            f"{kernel.__name__} has no parameter {', '.join(extra)}; it has {', '.join(signature.parameters)}"
        )


def _real(
    kernel: AnyKernel, parameters: Mapping[str, KernelParameter], args: Mapping[str, Any], types: Any
) -> Scalar | None:
    """Return the type of Real: stated, or the type of the arrays for Global[Real]."""
    if types is not None and not (isinstance(types, Mapping) and set(types) <= {"Real"}):
        raise LaunchError(f'types is {{"Real": "f32"}} or {{"Real": "f64"}}, not {shown(types)}')
    chosen = None
    if types:
        real_name = getattr(types["Real"], "name", types["Real"])
        chosen = SCALARS.get(real_name) if isinstance(real_name, str) else None
        if chosen not in FLOATS:
            raise LaunchError(f"Real is f32 or f64, not {real_name if chosen else shown(real_name)}")
    for name, parameter in parameters.items():
        if not (parameter.real and isinstance(parameter.type, Array)):
            continue
        argument = args[name]
        array = argument if isinstance(argument, DeviceArray | NewArray) else checked_array(name, argument)
        type = named(array.type) if isinstance(array, NewArray) else from_dtype(array.dtype)
        if type not in FLOATS:
            raise LaunchError(f"{kernel.__name__}: {name} is Global[Real], f32 or f64, not {type}")
        if chosen is not None and type is not chosen:
            raise LaunchError(f"{kernel.__name__}: Real is {chosen}, but {name} is {type}")
        chosen = type
    return chosen


def _any_array(name: str, argument: Any) -> Buffer:
    """Return an array argument of any element type, structs included."""
    structs = isinstance(argument, np.ndarray) and argument.dtype.names is not None and argument.ndim
    return argument if structs else checked_array(name, argument)


def accessed_memory(
    name: str, element: Scalar | Vector, argument: Any, accepts: tuple[str, ...]
) -> tuple[Buffer, Buffer, Buffer | None]:
    """Return the memory of an array argument as elements of a type, the memory as the argument has it, and the value of each element
    of a filled one. accepts: as in `KernelParameter`. Raises LaunchError."""
    is_created, name = isinstance(argument, NewArray | DeviceArray), Name.parse(name).user
    fill = argument.fill if is_created else None
    if accepts and fill is not None:
        fill = fill_of_elements(fill, element)
        array = _memory(argument, fill is None)
    elif isinstance(argument, NewArray):
        if named(argument.type) != element:
            raise LaunchError(
                f"{name} is Global[{element}], not {named(argument.type)}; give st.{argument.call}, st.{element})"
            )
        array = argument.template()
    elif isinstance(argument, DeviceArray):
        array = argument.host
    else:
        array = _any_array(name, argument) if accepts else checked_array(name, argument)
    if accepts:
        return as_elements(name, array, element, accepts), array, fill
    dtype = COMPLEX[element] if element in COMPLEX else split(element)[0].dtype
    if array.dtype != dtype:
        raise LaunchError(
            f"{name} is Global[{element}], the array given is {array.dtype}; convert it: .astype(np.{dtype})"
        )
    array = real_view(array) if element in COMPLEX else array
    return array, array, fill


def _memory(argument: NewArray | DeviceArray, with_values: bool) -> Buffer:
    """Return the memory of a filled array. with_values: with its elements, else with any."""
    if isinstance(argument, NewArray):
        return argument.initial() if with_values else argument.template()
    if with_values:
        argument.fetch()
    return argument.host


def _structs(name: str, type: RecordArrayParameter, argument: Any) -> Buffer:
    """Return an array of structs as a NumPy array."""
    if isinstance(argument, DeviceArray):
        raise LaunchError(f"{name} is an array of {type}: a DeviceArray has elements of one type")
    if isinstance(argument, NewArray):
        if not is_struct(argument.type):
            raise LaunchError(f"{name} is an array of {type}, not {argument.type}")
        return np.zeros(argument.shape, _dtype(type.components))
    if not isinstance(argument, np.ndarray):
        raise LaunchError(f"{name} is a NumPy array of {type}, not {shown(argument)}")
    if argument.dtype.names is None:
        raise LaunchError(f"{name} is an array of {type}, the array given is {argument.dtype}")
    return argument


def _dtype(components: Sequence[tuple[str, tuple[str, ...], Any]]) -> np.dtype[Any]:
    """Return the aligned NumPy type of a struct with these components."""
    fields: list[tuple[str, Any]] = []
    for key, of_key in groupby(components, lambda component: component[1][0]):
        inner = [(own, path[1:], kind) for own, path, kind in of_key]
        fields.append((key, _dtype(inner) if inner[0][1] else inner[0][2].dtype))
    return np.dtype(fields, align=True)


def record_numbers(name: str, type: RecordParameter, argument: Any) -> dict[str, np.generic]:
    """Return the numbers of a tuple or a struct by the program's own parameters."""
    numbers = {}
    for own, path, kind in type.components:
        value = argument
        for key in path:
            try:
                value = value[int(key)] if key.isdigit() else getattr(value, key)
            except (AttributeError, TypeError, LookupError):
                raise LaunchError(f"{name} is {type}, not {argument!r}") from None
        numbers[own] = checked_scalar(".".join((name, *path)), kind, value)
    return numbers


MAX_CONST_DEPTH, MAX_CONST_NUMBERS = 16, 1 << 16
"""Maximum nesting of the tuples of a Const value, and maximum numbers in it."""


def _constant_table(name: str, type: Array, argument: Any) -> tuple[Any, ...]:
    """Return the values of a table in constant memory."""
    element = type.element
    if not isinstance(element, Scalar):
        raise LaunchError(f"{name} is Constant[{element}]: a table in constant memory holds numbers of a scalar type")
    if (
        not isinstance(argument, np.ndarray)
        or argument.ndim != 1
        or argument.dtype != element.dtype
        or not argument.size
    ):
        expected = f"a NumPy array of one dimension and of {element.dtype}, with an element or more"
        raise LaunchError(f"{name} is Constant[{element}]: give {expected}, not {shown(argument)}")
    if excess := over_capacity("constant", argument.nbytes):
        raise LaunchError(f"{name} has {': '.join(excess)}")
    return tuple(argument.tolist())


def _const(name: str, argument: Any) -> Any:
    """Return a Const value: an int, float, bool or text, or a tuple of them."""

    def count(value: Any, depth: int) -> int:
        if isinstance(value, Enum):
            return count(value.value, depth)
        if is_record(value):  # its attributes are read by name
            return 1
        if isinstance(value, tuple):
            if depth == MAX_CONST_DEPTH:
                raise LaunchError(f"{name} is Const: its tuples nest more than {MAX_CONST_DEPTH} deep")
            return 1 + sum(count(item, depth + 1) for item in value)
        number = value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.complexfloating) else value
        if isinstance(number, list | np.ndarray):
            raise LaunchError(f"{name} is Const: give a tuple, not {shown(value)}")
        if not isinstance(number, bool | int | float | complex | str):
            raise LaunchError(f"{name} is Const, a number, a text or a tuple of them, not {shown(value)}")
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 64:
            raise LaunchError(f"{name} is Const: {shown(value)} does not fit 64 bits")
        return 1

    argument = as_number(argument)
    if count(argument, 0) > MAX_CONST_NUMBERS:
        raise LaunchError(f"{name} is Const: it has more than {MAX_CONST_NUMBERS:,} numbers; give it as an array")
    return argument
