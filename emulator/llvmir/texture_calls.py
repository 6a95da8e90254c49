"""Calls of the functions of textures and surfaces in the headers of CUDA C++ (`headers/texture.h`)."""

from ..ir import nodes as ir
from ..language.textures import AddressMode, SurfaceForm, TextureForm
from ..language.types import F32, I32, SCALARS, Results
from .accesses import Scope
from .arithmetic import bitcast, compared, constant, operation, selected, signed
from .calls import fixed
from .module import Constant, Global, Instruction, Operand
from .types import UnsupportedError, scalar_of
from .values import Item

_DIMENSIONS = {"index": (1, 0), "1d": (1, 0), "2d": (2, 0), "3d": (3, 0), "1dlayered": (1, 1), "2dlayered": (2, 1)}
"""Coordinates and layers of a fetch by its word."""
_CLAMP: AddressMode = "clamp"
_ZERO, _TRAP = 0, 2
_LAYERED = 10
"""Added to the number of dimensions of a surface with layers."""


def reference_handle(scope: Scope, call: Instruction) -> Item:
    """The handle of a texture or surface reference."""
    symbol: Operand = call.operands[0]
    while isinstance(symbol, Constant):
        symbol = symbol.operands[0]
    if not isinstance(symbol, Global):
        raise UnsupportedError("a texture reference that is chosen at run time is not supported")
    module = scope.memories.module
    described = module.debug.variable(module.variables[symbol.name].described)
    return scope.textures.handle(described.get("name", symbol.name), scope.emitter.span)


def fetch(scope: Scope, call: Instruction) -> Item:
    _, _, word, result = call.function.split(".")
    coordinates, layers = _DIMENSIONS[word]
    operands = [scope.values.expr(operand) for operand in call.operands]
    type, span = SCALARS[result], scope.emitter.span
    placeholder = TextureForm(type, 1, (1,) * coordinates, layers, (_CLAMP,) * coordinates)
    name, form = scope.textures.access(operands[0], TextureForm, placeholder)
    assert isinstance(form, TextureForm)
    if (len(form.extents), bool(form.layers)) != (coordinates, bool(layers)):
        wanted = f"{'layers and ' * layers}{coordinates} axes"
        raise UnsupportedError(f"{name} is fetched as a texture of {wanted}: its array has {_axes(form)}")
    if form.result is not type and (form.result is F32 or type is F32):
        read = 'floats or read="normalized"' if type is F32 else 'integers and read="element"'
        raise UnsupportedError(f"{name} is fetched as {type}, its texture returns {form.result}: give {read}")
    at = tuple(signed(own) if word == "index" else own for own in operands[1 : 1 + coordinates])
    register = scope.emitter.results(call.name, Results((form.result,) * 4))
    layer = signed(operands[-1]) if layers else None
    scope.emitter.emit(ir.Let(register, ir.Fetch(name, at, layer, form, register.type, span), span))
    items = [ir.Component(register, ir.Const(n, I32, span), form.result, span) for n in range(4)]
    return [signed(item) if type is not F32 else item for item in items]


def surface(scope: Scope, call: Instruction) -> Item | None:
    """A read or a write of one component of a texel, whose first coordinate is in bytes."""
    _, _, verb, word = call.function.split(".")
    handle, x, y, z, *facts = (scope.values.expr(operand) for operand in call.operands[:8])
    dimensions, mode, lanes, lane = (fixed(own, "boundary mode of a surface") for own in facts)
    type, layered, span = SCALARS[word], dimensions > _LAYERED, scope.emitter.span
    count = dimensions % _LAYERED
    name, form = scope.textures.access(handle, SurfaceForm, SurfaceForm(type, lanes, (1,) * count, int(layered)))
    if (len(form.extents), bool(form.layers)) != (count, layered):
        raise UnsupportedError(
            f"{name} is accessed as a surface of {'layers and ' * layered}{count} axes: its array has {_axes(form)}"
        )
    if (form.element.size, form.channels) != (type.size, lanes):
        texel = f"{form.channels} elements of {form.element}"
        raise UnsupportedError(
            f"{name} is accessed as texels of {lanes} elements of {type}: its array has texels of {texel}"
        )
    shift = (type.size * lanes).bit_length() - 1
    at = [operation("shr", x, constant(shift, I32, span)), *[y] * (count > 1), *[z] * (layered or count > 2)]
    extents = [constant(n, I32, span) for n in (*form.extents, *[form.layers] * layered)]
    at = [scope.emitter.let(own, "texel") for own in at]
    zero, inside = constant(0, I32, span), None
    if mode != _TRAP:
        if mode == _ZERO:
            for own, extent in zip(at, extents, strict=True):
                within = operation("both", compared("sge", own, zero), compared("slt", own, extent))
                inside = within if inside is None else operation("both", inside, within)
            inside = scope.emitter.let(inside, "inside")  # type: ignore[arg-type]
        last = [operation("sub", extent, constant(1, I32, span)) for extent in extents]
        at = [operation("min", operation("max", own, zero), end) for own, end in zip(at, last, strict=True)]
    flat = at[-1]
    for own, extent in zip(at[-2::-1], extents[-2::-1], strict=True):
        flat = operation("add", operation("mul", flat, extent), own)
    index = operation("add", operation("mul", flat, constant(lanes, I32, span)), constant(lane, I32, span))
    if mode == _TRAP:
        index = ir.Within(index, name, tuple(at[::-1]), tuple(extents[::-1]), I32, span)
    if verb == "read":
        value = scope.emitter.effect(ir.Load(name, index, form.element, span), "texel")
        value = bitcast(value, type)
        value = value if inside is None else selected(inside, value, constant(0, value.type, span))  # type: ignore[arg-type]
        return bitcast(value, scalar_of(call.type))
    stored = bitcast(scope.values.expr(call.operands[8]), form.element)
    store = ir.Store(name, index, stored, span)
    scope.emitter.emit(store if inside is None else ir.If(inside, (store,), (), span))
    return None


def _axes(form: SurfaceForm) -> str:
    return f"{'layers and ' * bool(form.layers)}{len(form.extents)}"


CALLS = {"fetch": fetch, "surface": surface}
