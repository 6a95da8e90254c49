"""Texture fetches as operations and loads of texels: addressing, conversion and filtering.

An H200 has these bits (tests/cuda_cpp/h200_textures.npz). A normalised coordinate has 21 fractional bits, a coordinate in
texels 8, rounded up at ties. Weights have 8 bits. The texels of a filter are aligned to the largest exponent, with 4 bits more than
their mantissa, and the sum is rounded to nearest, away from zero at ties.
Known limits: linear fetches of f32 and f16 in three dimensions, and of normalised i8, differ in some results by one unit in the last
place. An infinite texel whose weight is rounded to 0 is ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from ..ir import nodes as ir
from ..ir.names import component
from ..ir.nodes import UNCOUNTED
from ..ir.walk import effect, map_bodies, rewrite_operands, statements
from ..language.textures import AddressMode
from ..language.types import F16, F32, F64, I32, U32, U64, Scalar
from .generated import Code

NORMALIZED_BITS = 21
WEIGHT = 256
LARGEST = float(1 << 20)  # texels, beyond the extents of every texture
_HUGE = 1e9
_SMALLEST_NORMAL = 2.0**-126


def lower_fetches(program: ir.Program) -> ir.Program:
    """Return the program without texture fetches."""
    functions = (*program.functions, program.kernel)
    if not any(isinstance(effect(stmt), ir.Fetch) for f in functions for stmt in statements(f.body)):
        return program
    *callees, kernel = (replace(f, body=_Fetches(f).body(f.body)) for f in functions)
    return ir.Program(kernel, tuple(callees))


class _Fetches:
    """The fetches of a function. The components of their results become registers."""

    def __init__(self, function: ir.Function) -> None:
        fetches = (stmt for stmt in statements(function.body) if isinstance(effect(stmt), ir.Fetch))
        self.results = {
            stmt.target.name for stmt in fetches if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg)
        }
        self.numbers = count()

    def body(self, body: ir.Body) -> ir.Body:
        return tuple(new for stmt in body for new in self.statement(stmt))

    def split(self, node: Any) -> Any:
        match node:
            case ir.Component(value=ir.Reg(name=name), index=ir.Const(value=index)) if name in self.results:
                return ir.Reg(component(name, str(index)), node.type, node.span)
        return node

    def statement(self, stmt: ir.Stmt) -> Iterable[ir.Stmt]:
        stmt = rewrite_operands(stmt, self.split)
        if isinstance(stmt, ir.Let) and isinstance(fetch := stmt.value, ir.Fetch):
            target, code = stmt.target, _Code(fetch.span, "fetch@texel", self.numbers)
            results = _Lowering(code, fetch).results()
            if isinstance(target, ir.Reg):
                for number, result in enumerate(results):
                    register = ir.Reg(component(target.name, str(number)), fetch.form.result, fetch.span)
                    code.body.append(ir.Let(register, result, fetch.span, UNCOUNTED))
            return code.body
        return (map_bodies(stmt, self.body),)


class _Code(Code):
    """The code of a fetch."""

    loads = 0

    def load(self, array: str, index: ir.Expr, type: Scalar) -> ir.Expr:
        """Load an element. The first one is the instruction of the fetch."""
        self.loads += 1
        return self.let(ir.Load(array, index, type, self.span), -1 if self.loads == 1 else UNCOUNTED)

    def sum(self, terms: Sequence[ir.Expr]) -> ir.Expr:
        total = terms[0]
        for term in terms[1:]:
            total = self.op("add", total, term)
        return total

    def clipped(self, value: ir.Expr, low: float, high: float) -> ir.Expr:
        return self.op("min", self.op("max", value, low), high)

    def flushed(self, value: ir.Expr) -> ir.Expr:
        """Return an f32, denormals as zeros of their sign."""
        small = self.op("lt", self.op("abs", value), _SMALLEST_NORMAL)
        return self.op("select", small, self.op("mul", value, 0.0), value)

    def floor(self, value: ir.Expr) -> ir.Expr:
        """Return the integer below a float."""
        return self.cast(self.op("floor", value), I32)


class _Lowering:
    """One fetch. A tap of a coordinate is an index, and whether it is inside the texture (None: always)."""

    def __init__(self, code: _Code, fetch: ir.Fetch) -> None:
        self.code, self.fetch, self.form = code, fetch, fetch.form
        self.linear = self.form.filter == "linear"

    def results(self) -> list[ir.Expr]:
        """Return the four components; absent ones are 0, and 1 for the fourth."""
        code, form, fetch = self.code, self.form, self.fetch
        axes = [self.axis(n, coordinate) for n, coordinate in enumerate(fetch.coordinates)]
        layer = None
        if fetch.layer is not None:  # a negative layer is a large one
            layer = code.cast(code.op("min", code.cast(fetch.layer, U32), form.layers - 1), I32)
        linear = self.linear and fetch.coordinates[0].type is not I32
        if linear and len(axes) == 1 and layer is None and form.address[0] == "border":
            axes.append(self.row())
        texels = [
            self.texel([axis[0][number >> n & 1] for n, axis in enumerate(axes)], layer)
            for number in range(1 << len(axes) if linear else 1)
        ]
        if linear:
            weights = self.weights([axis[1] for axis in axes])
            values = [self.blended(own, weights) for own in zip(*texels, strict=True)]
        else:
            values = [self.converted(value) for value in texels[0]]
        absent = [ir.Const(form.result.dtype.type(n).item(), form.result, fetch.span) for n in (0, 0, 0, 1)]
        return [*values, *absent[len(values) :]]

    # -------------------------------------------------------------- addressing
    def axis(self, number: int, coordinate: ir.Expr) -> tuple[list[Any], ir.Expr]:
        """Return the taps of a coordinate, and the weight of the second, i32 of 0 ... 255."""
        code, form, extent = self.code, self.form, self.form.extents[number]
        if coordinate.type is I32:  # tex1Dfetch: beyond the texture it is 0
            return [self.tap(coordinate, extent, "border")], coordinate
        mode: AddressMode = form.address[number]
        if not form.normalized and mode in ("wrap", "mirror"):
            mode = "clamp"
        flushed = code.flushed(coordinate)
        number_only = code.op("select", code.op("eq", flushed, flushed), flushed, 0.0)
        at = code.clipped(code.cast(number_only, F64), -_HUGE, _HUGE)
        if mode in ("wrap", "mirror"):
            period = 1.0 if mode == "wrap" else 2.0
            at = code.op("sub", at, code.op("mul", code.op("floor", code.op("mul", at, 1 / period)), period))
        if form.normalized:
            at = code.op("floor", code.op("mul", at, 2.0**NORMALIZED_BITS))
            at = code.op("mul", at, extent * 2.0**-NORMALIZED_BITS)
        if mode == "clamp" and self.linear:
            at = code.clipped(at, 0.5, extent - 0.5)
        at = code.clipped(at, -LARGEST, LARGEST)
        if not self.linear:
            index = code.floor(at)
            return [self.tap(index, extent, mode)], index
        fixed = code.op("sub", code.floor(code.op("add", code.op("mul", at, float(WEIGHT)), 0.5)), WEIGHT // 2)
        first = code.op("shr", fixed, 8)
        taps = [self.tap(index, extent, mode) for index in (first, code.op("add", first, 1))]
        return taps, code.op("and", fixed, WEIGHT - 1)

    def row(self) -> tuple[list[Any], ir.Expr]:
        """Return the taps of y = 0 in one row: an H200 fetches from a texture without y there, half in the border."""
        taps = [self.tap(ir.Const(n, I32, self.fetch.span), 1, "border") for n in (-1, 0)]
        return taps, ir.Const(WEIGHT // 2, I32, self.fetch.span)

    def tap(self, index: ir.Expr, extent: int, mode: AddressMode) -> tuple[ir.Expr, ir.Expr | None]:
        code, inside = self.code, None
        if mode in ("wrap", "mirror"):
            period = extent if mode == "wrap" else 2 * extent
            index = code.op("select", code.op("lt", index, 0), code.op("add", index, period), index)
            index = code.op("select", code.op("ge", index, period), code.op("sub", index, period), index)
            if mode == "mirror":
                index = code.op("min", index, code.op("sub", code.op("neg", index), 1 - period))
        elif mode == "border":
            inside = code.op("both", code.op("ge", index, 0), code.op("lt", index, extent))
        return code.clipped(index, 0, extent - 1), inside

    def texel(self, taps: Sequence[Any], layer: ir.Expr | None) -> list[ir.Expr]:
        """Return the elements of the texel at the taps; 0 outside the texture."""
        code, form = self.code, self.form
        flat = layer
        extents = (*form.extents, 1)[: len(taps)]
        for (index, _), extent in reversed(list(zip(taps, extents, strict=True))):
            flat = index if flat is None else code.op("add", code.op("mul", flat, extent), index)
        assert flat is not None
        inside = [own for _, own in taps if own is not None]
        elements = []
        for channel in range(form.channels):
            index = code.op("add", code.op("mul", flat, form.channels), channel) if form.channels > 1 else flat
            value = code.load(self.fetch.array, index, form.element)
            value = code.cast(value, self.wide)
            for condition in inside:
                value = code.op("select", condition, value, 0.0 if value.type is F32 else 0)
            elements.append(value)
        return elements

    @property
    def wide(self) -> Scalar:
        """The type of the elements' values. That of normalised integers is i32."""
        if self.form.element.is_float:
            return F32
        if self.form.read == "normalized" or self.form.element.kind == "int":
            return I32
        return U32

    def converted(self, value: ir.Expr) -> ir.Expr:
        """Return the component of a fetch without a filter."""
        if self.form.read != "normalized":
            return value
        element = self.form.element
        return self.code.op("max", self.code.op("fdiv", self.code.cast(value, F32), float(element.range[1])), -1.0)

    # -------------------------------------------------------------- filtering
    def weights(self, fractions: Sequence[ir.Expr]) -> list[ir.Expr]:
        """Return the weights of the texels, in 256ths; each split of a weight rounds one product, and the rest is the other's."""
        code = self.code
        if len(fractions) == 1:
            return [code.op("sub", _whole(fractions[0]), fractions[0]), fractions[0]]
        if len(fractions) == 2:
            both = self.product(fractions[0], fractions[1], WEIGHT // 2)
            second, third = code.op("sub", fractions[0], both), code.op("sub", fractions[1], both)
            first = code.op("sub", code.op("sub", code.op("sub", _whole(both), both), second), third)
            return [first, second, third, both]
        results = []
        for depth in (code.op("sub", _whole(fractions[2]), fractions[2]), fractions[2]):
            right = self.product(fractions[0], depth, WEIGHT // 2)
            left = code.op("sub", depth, right)
            below_right, below_left = (
                self.product(right, fractions[1], WEIGHT // 2),
                self.product(left, fractions[1], WEIGHT // 2 - 1),
            )
            results += [code.op("sub", left, below_left), code.op("sub", right, below_right), below_left, below_right]
        return results

    def product(self, a: ir.Expr, b: ir.Expr, rounding: int) -> ir.Expr:
        """Return the product of two weights."""
        return self.code.op("shr", self.code.op("add", self.code.op("mul", a, b), rounding), 8)

    def blended(self, texels: Sequence[ir.Expr], weights: Sequence[ir.Expr]) -> ir.Expr:
        if not self.form.element.is_float:
            return self.blended_integers(texels, weights)
        code, groups = self.code, range(0, len(texels), 4)
        total = code.sum([self.aligned(texels[n : n + 4], weights[n : n + 4]) for n in groups])
        away = code.op("mul", total, (1 + 2.0**-45) / WEIGHT)
        if self.form.element is F16:
            return code.cast(code.cast(away, F16), F32)
        return code.flushed(code.cast(away, F32))

    def aligned(self, texels: Sequence[ir.Expr], weights: Sequence[ir.Expr]) -> ir.Expr:
        """Return the weighted sum of floats, f64. An infinity or a NaN with a weight makes it one."""
        if self.form.element is F32:
            texels = [self.code.flushed(texel) for texel in texels]
        code, bits = self.code, 24 + 4 if self.form.element is F32 else 11 + 4
        used = [code.op("select", code.op("eq", w, 0), 0.0, t) for t, w in zip(texels, weights, strict=True)]
        largest = None
        for value in used:
            exponent = code.op("and", code.op("shr", code.op("as_u32", value), 23), 255)
            largest = exponent if largest is None else code.op("max", largest, exponent)
        assert largest is not None
        wide = [code.cast(weight, F64) for weight in weights]
        values = [code.cast(value, F64) for value in used]
        plain = code.sum([code.op("mul", v, w) for v, w in zip(values, wide, strict=True)])
        shift = code.cast(largest, U64)
        unit = code.op("as_f64", code.op("shl", code.op("add", shift, 1023 - 126 - bits), 52))
        inverse = code.op("as_f64", code.op("shl", code.op("sub", 1023 + 126 + bits, shift), 52))
        whole = [code.op("trunc", code.op("mul", value, inverse)) for value in values]
        exact = code.op("mul", code.sum([code.op("mul", v, w) for v, w in zip(whole, wide, strict=True)]), unit)
        return code.op("select", code.op("eq", largest, 255), plain, exact)

    def blended_integers(self, texels: Sequence[ir.Expr], weights: Sequence[ir.Expr]) -> ir.Expr:
        """Return the weighted sum of normalised integers: rounded to 16 bits, then divided by their largest value."""
        code, element = self.code, self.form.element
        total = code.sum([code.op("mul", t, w) for t, w in zip(texels, weights, strict=True)])
        largest = (1 << (16 - (element.kind == "int"))) - 1
        if element.size == 1:
            scale = largest / element.range[1] / WEIGHT
            total = code.floor(code.op("add", code.op("mul", code.cast(total, F64), scale), 0.5))
        else:
            total = code.op("shr", code.op("add", total, WEIGHT // 2), 8)
        return code.op("max", code.op("fdiv", code.cast(total, F32), float(largest)), -1.0)


def _whole(like: ir.Expr) -> ir.Const:
    return ir.Const(WEIGHT, I32, like.span)
