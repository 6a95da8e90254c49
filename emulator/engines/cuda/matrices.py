"""Tensor cores in CUDA C++: functions with the PTX instructions, by the types of their fragments."""

from ...ir import nodes as ir
from ...ir.effects import ASYNC_ORDERS
from ...ir.matrices import GROUP_INSTRUCTIONS, INSTRUCTIONS, Instruction
from ...language.types import Scalar, Value, Vector

_SPELLED = {"u32": "unsigned int", "f32": "float", "i32": "int", "f64": "double"}
_CONSTRAINTS = {"u32": "r", "f32": "f", "i32": "r", "f64": "d"}


def name(type: Value) -> str:
    """The C++ name of the type of a fragment."""
    return _SPELLED.get(str(type), str(type))


def _element(type: Value) -> Scalar:
    return type.element if isinstance(type, Vector) else type


def _count(type: Value) -> int:
    return type.lanes if isinstance(type, Vector) else 1


def _parts(variable: str, type: Value) -> list[str]:
    return [f"{variable}.{letter}" for letter in "xyzw"[: type.lanes]] if isinstance(type, Vector) else [variable]


def _operands(variable: str, type: Value, kind: str = "") -> str:
    constraint = _CONSTRAINTS[str(_element(type))]
    return ", ".join(f'"{kind}{constraint}"({part})' for part in _parts(variable, type))


def _places(first: int, type: Value) -> str:
    return f"{{{{{', '.join(f'%{first + n}' for n in range(_count(type)))}}}}}"


def _mma(row: Instruction) -> str:
    a, b, c = row.types
    numbers = [0, _count(c), _count(c) + _count(a), _count(c) + _count(a) + _count(b)]
    places = ", ".join(_places(first, type) for first, type in zip(numbers, (c, a, b, c), strict=True))
    inputs = ", ".join(_operands(letter, type) for letter, type in zip("abc", (a, b, c), strict=True))
    shape, types = row.name.split(".", 1)
    return f"""\
static __device__ __forceinline__ {name(c)} {function(row)}({name(a)} a, {name(b)} b, {name(c)} c) {{{{
    {name(c)} d;
    asm volatile("mma.sync.aligned.{shape}.row.col.{types} {places};"
        : {_operands("d", c, "=")} : {inputs});
    return d;
}}}}
"""


def function(row: Instruction) -> str:
    """The name of the function of an instruction."""
    return f"mma_{row.name.replace('.', '_')}"


def moved(node: ir.MoveMatrix) -> str:
    """The name of the function of a move of matrices."""
    count = _count(node.type if node.mode == "load" else node.value.type)
    return f"{node.mode}_matrix{'' if node.mode == 'move' else f'_x{count}'}{'_transposed' * (node.transposed and node.mode != 'move')}"


def group_function(node: ir.Wgmma) -> str:
    """The name of the function of an instruction of a warpgroup."""
    form = "_registers" if node.in_a is None else ""
    form += "".join(f"_transposed_{name}" for name, own in zip("ab", node.transposed, strict=True) if own)
    return f"wgmma_{node.instruction.replace('.', '_')}{form}{'_negative' * node.negative}"


def group_helper(node: ir.Wgmma) -> str:
    """The function of an instruction of a warpgroup. Descriptors have addresses from the start of their array."""
    row = GROUP_INSTRUCTIONS[node.instruction]
    part, count, element = row.part, row.registers, name(row.element)
    operands = [f'"+{_CONSTRAINTS[row.element.name]}"(d[{n}])' for n in range(count)]
    total = f"{{{', '.join(f'%{n}' for n in range(count))}}}"
    fragment = part.types[0]
    if node.in_a is None:
        parameters, inputs = f"{name(fragment)} a", [_operands("a", fragment)]
        places = f"{{{', '.join(f'%{count + n}' for n in range(_count(fragment)))}}}"
    else:
        parameters, inputs, places = "const void* in_a, unsigned long long a", ['"l"(in_shared(in_a, a))'], f"%{count}"
    at = count + (_count(fragment) if node.in_a is None else 1)
    inputs += ['"l"(in_shared(in_b, b))', '"r"((int)add)']
    flags = "" if part.total == "s32" else f", {-1 if node.negative else 1}, 1"
    if part.a in ("f16", "bf16"):
        flags += "".join(f", {int(own)}" for own in node.transposed[node.in_a is None :])
    wrapped = [", ".join(operands[first : first + 8]) for first in range(0, count, 8)]
    outputs = ",\n          ".join(wrapped)
    return f"""\
static __device__ __forceinline__ void {group_function(node)}(
    {element} (&d)[{count}], {parameters}, const void* in_b, unsigned long long b, bool add) {{
    auto in_shared = [](const void* array, unsigned long long descriptor) {{
        return descriptor + ((unsigned int)__cvta_generic_to_shared(array) >> 4);
    }};
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{at + 1}, 0; wgmma.mma_async.sync.aligned.{node.instruction} "
        "{total}, "
        "{places}, %{at}, p{flags}; }}"
        : {outputs}
        : {", ".join(inputs)} : "memory");
}}
"""


def order(node: ir.AsyncOrder) -> str:
    """The instruction of an order of a warpgroup."""
    pending = f" {node.pending}" if "wait" in node.mode else ""
    return f'asm volatile("{ASYNC_ORDERS[node.mode][1]}{pending};" ::: "memory")'


def _move(mode: str, count: int, transposed: bool) -> str:
    type = {1: "unsigned int", 2: "uint2", 4: "uint4"}[count]
    fragment = [f"d.{letter}" for letter in "xyzw"[:count]] if count > 1 else ["d"]
    shape = f"m8n8.x{count}{'.trans' * transposed}.shared.b16"
    suffix = f"_x{count}{'_transposed' * transposed}"
    if mode == "load":
        outputs, places = ", ".join(f'"=r"({part})' for part in fragment), ", ".join(f"%{n}" for n in range(count))
        return f"""\
static __device__ __forceinline__ {type} load_matrix{suffix}(const void* row) {{{{
    {type} d;
    asm volatile("ldmatrix.sync.aligned.{shape} {{{{{places}}}}}, [%{count}];"
        : {outputs} : "r"((unsigned int)__cvta_generic_to_shared(row)) : "memory");
    return d;
}}}}
"""
    inputs, places = ", ".join(f'"r"({part})' for part in fragment), ", ".join(f"%{n + 1}" for n in range(count))
    return f"""\
static __device__ __forceinline__ void store_matrix{suffix}(void* row, {type} d) {{{{
    asm volatile("stmatrix.sync.aligned.{shape} [%0], {{{{{places}}}}};"
        :: "r"((unsigned int)__cvta_generic_to_shared(row)), {inputs} : "memory");
}}}}
"""


HELPERS = {function(row): _mma(row) for row in INSTRUCTIONS.values()}
HELPERS |= {
    f"{mode}_matrix_x{count}{'_transposed' * transposed}": _move(mode, count, transposed)
    for mode in ("load", "store")
    for count in (1, 2, 4)
    for transposed in (False, True)
}
HELPERS["move_matrix"] = """\
static __device__ __forceinline__ unsigned int move_matrix(unsigned int a) {{
    unsigned int d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}}
"""
