"""Expressions and effects of the IR as CUDA C++ text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CompileError, Diagnostic
from ...ir import nodes as ir
from ...ir.effects import CLUSTER_BARRIERS, MBARRIER_OPS, REDUCTIONS, is_extreme_of_floats
from ...ir.matrices import INSTRUCTIONS
from ...ir.mbarriers import initial_count
from ...ir.updates import UPDATES
from ...ir.wide import access_type
from ...language.intrinsics import FULL_MASK, WARP_SIZE
from ...language.types import F64, HALVES, I32, I64, U32, U64, Array, Results, Scalar, Value, Vector
from ...runtime.engine import Dim3
from .matrices import function, group_function, moved, order
from .mbarriers import store_helper, tensor_helper
from .names import Names
from .operators import (
    ANY,
    INFIX,
    PRIMARY,
    SCOPES,
    UNARY,
    Fragment,
    cast,
    hexadecimal,
    literal,
    maker,
    spelled,
    type_name,
)

OPPOSITE = {"eq": "ne", "ne": "eq"}  # of floats too: a NaN is not equal
UNSIGNED_64 = "unsigned long long"


@dataclass(frozen=True)
class Common:
    """Names and facts common to the functions of a program.

    signatures: by function, its C++ name and the positions of arrays whose length it takes. scope: the names in use.
    structs: by type of results, the name of its struct. widest: bytes of
    accesses wider than the element of their array (`wide`). library: by mathematical operation, its device function. cluster: blocks
    of a cluster.
    """

    signatures: dict[str, tuple[str, tuple[int, ...]]]
    scope: Names
    block: Dim3
    structs: dict[Any, str]
    cooperative: bool
    widest: dict[str, int]
    library: dict[str, str]
    cluster: Dim3


class Expressions:
    """Prints expressions under the C++ names of one function.

    names: C++ identifiers of registers and arrays. arrays: their types. indices: those of `lane` and `warp`, where they have a variable.
    lengths: of arrays, by array name. widest: those of the program in its kernel, else none.
    """

    def __init__(
        self,
        names: dict[str, str],
        arrays: Mapping[str, Array],
        lengths: Mapping[str, str],
        common: Common,
        widest: Mapping[str, int],
    ) -> None:
        self.names, self.lengths, self.functions, self.block = names, lengths, common.signatures, common.block
        self.arrays = {array: type.length for array, type in arrays.items()}
        self.elements = {array: type.element for array, type in arrays.items()}
        self.structs, self.library, self.widest = common.structs, common.library, widest
        self.indices: dict[str, str] = {}

    def __call__(self, node: Any, level: int = ANY, symbol: str = "") -> str:
        """The text of an expression or effect, in parentheses if it binds looser than `level`."""
        return self.text(node).within(level, symbol)

    def text(self, node: Any) -> Fragment:
        printer: Callable[[Any], Fragment] = getattr(self, f"_{type(node).__name__}")
        return printer(node)

    def type_name(self, type: Value | Results) -> str:
        """The C++ name of a type."""
        return self.structs[type] if isinstance(type, Results) else type_name(type)

    # -------------------------------------------------------------- expressions
    def _Const(self, node: ir.Const) -> Fragment:
        return literal(node)

    def _Reg(self, node: ir.Reg) -> Fragment:
        return Fragment(self.names[node.name])

    def _ArrayRef(self, node: ir.ArrayRef) -> Fragment:
        return Fragment(self.names[node.name])

    def _Item(self, node: ir.Item) -> Fragment:
        return self.element(node.array, node.index)

    def _Special(self, node: ir.Special) -> Fragment:
        if node.name in self.indices:
            return Fragment(self.indices[node.name])
        if node.name in ("lane", "warp"):
            return self.in_warp(node.name)
        if node.name in _OF_CLUSTERS:
            return Fragment(f"int({_OF_CLUSTERS[node.name]}())")
        group, axis = node.name.split(".")
        if group in _OF_CLUSTERS:
            return Fragment(f"int({_OF_CLUSTERS[group]}().{axis})")
        variable = {"thread": "threadIdx", "block": "blockIdx", "block_dim": "blockDim", "grid_dim": "gridDim"}[group]
        return Fragment(f"int({variable}.{axis})")

    def in_warp(self, name: str) -> Fragment:
        """Lane or warp, from the linear index of the thread in its block."""
        linear = Fragment("int(threadIdx.x)")
        if self.block[1:] != (1, 1):
            rows = "int(threadIdx.y) + int(blockDim.y) * int(threadIdx.z)"
            linear = Fragment(f"int(threadIdx.x) + int(blockDim.x) * ({rows})", INFIX["+"], "+")
        symbol, right = ("&", WARP_SIZE - 1) if name == "lane" else (">>", 5)
        return Fragment(f"{linear.within(INFIX[symbol], symbol)} {symbol} {right}", INFIX[symbol], symbol)

    def _Op(self, node: ir.Op) -> Fragment:
        if node.name == "not" and isinstance(inner := node.args[0], ir.Op):
            if inner.name == "not":
                return self.text(inner.args[0])
            if inner.name in OPPOSITE:
                return self.text(replace(inner, name=OPPOSITE[inner.name]))
        if node.name in self.library:
            call = Fragment(f"{self.functions[self.library[node.name]][0]}({', '.join(self(a) for a in node.args)})")
            return call if node.type is F64 else cast(node.type, call)
        return spelled(node, [self.text(a) for a in node.args])

    def _Pack(self, node: ir.Pack) -> Fragment:
        if isinstance(node.type, Results):
            return Fragment(f"{self.type_name(node.type)}{{{', '.join(self(a) for a in node.args)}}}")
        assert isinstance(node.type, Vector)
        return Fragment(f"{maker(node.type)}({', '.join(self(a) for a in node.args)})")

    def _Component(self, node: ir.Component) -> Fragment:
        value = self(node.value, PRIMARY)
        if isinstance(node.value.type, Results):
            return Fragment(f"{value}.item{self(node.index)}")
        if isinstance(node.index, ir.Const):
            return Fragment(f"{value}.{'xyzw'[int(node.index.value)]}")
        assert isinstance(node.value, ir.Reg | ir.Item), "a part chosen in an unrolled loop is one of a variable"
        return Fragment(f"(&{value}.x)[{self(node.index)}]")

    def _Extent(self, node: ir.Extent) -> Fragment:
        length = self.arrays[node.array]
        if length is None:
            return Fragment(self.lengths[node.array])
        return literal(ir.Const(length, I32, node.span))

    # -------------------------------------------------------------- memory
    def element(self, array: str, index: Any) -> Fragment:
        return Fragment(f"{self.names[array]}[{self(index)}]")

    def declared(self, array: str, type: Value) -> str:
        """The type of an array in its declaration, aligned to its widest access."""
        alignment = f"__align__({self.widest[array]}) " if array in self.widest else ""
        return f"{alignment}{self.type_name(type)}"

    def accessed(self, node: ir.Access) -> Fragment:
        """The memory of an access; of another type than the array's element, behind a cast of the array."""
        type = access_type(node)
        if node.block is not None:
            mapped = f"__cluster_map_shared_rank({self.names[node.array]}, {self(node.block)})"
            return Fragment(f"static_cast<{type_name(type)}*>({mapped})[{self(node.index)}]")
        if type == self.elements.get(node.array, type):
            return self.element(node.array, node.index)
        const = "const " if isinstance(node, ir.Load) and node.order != "acquire" else ""
        return Fragment(f"reinterpret_cast<{const}{type_name(type)}*>({self.names[node.array]})[{self(node.index)}]")

    def _Load(self, node: ir.Load) -> Fragment:
        place = self.accessed(node)
        if node.order == "volatile":
            return Fragment(f"*(const volatile {type_name(node.type)}*)&{place.text}", UNARY)
        if node.order == "acquire":
            plain = f"({type_name(node.type)}*)&{place.text}"  # the builtin takes no pointer to const
            return Fragment(f"__nv_atomic_load_n({plain}, __NV_ATOMIC_ACQUIRE, {_scope(node)})")
        return place

    def _Fetch(self, node: ir.Fetch) -> Fragment:
        message = f"the fetch from the texture {node.array} is not printed as CUDA C++: launch on an emulator, without compiled"
        raise CompileError([Diagnostic("compile", message, node.span)])

    def _Store(self, node: ir.Store) -> Fragment:
        place = self.accessed(node).text
        if node.order == "async":
            if not isinstance(node.value, ir.Load):  # folded into its store
                raise _not_printed("an asynchronous copy in several elements", node)
            source = self.accessed(node.value).text
            return Fragment(f"__pipeline_memcpy_async(&{place}, &{source}, {node.value.type.size})")
        if isinstance(node.value, ir.MoveMatrix) and node.value.mode == "store":  # folded into its store
            return Fragment(f"{moved(node.value)}(&{place}, {self(node.value.value)})")
        if node.order == "mbarrier":
            count = initial_count(node.value)
            return Fragment(f"mbarrier_inval(&{place})" if count is None else f"mbarrier_init(&{place}, {self(count)})")
        if node.order == "volatile":
            assert node.value.type is not None
            return Fragment(f"*(volatile {type_name(node.value.type)}*)&{place} = {self(node.value)}")
        if node.order == "release":
            return Fragment(f"__nv_atomic_store_n(&{place}, {self(node.value)}, __NV_ATOMIC_RELEASE, {_scope(node)})")
        return Fragment(f"{place} = {self(node.value)}")

    def _Atomic(self, node: ir.Atomic) -> Fragment:
        if is_extreme_of_floats(node):
            place = self.accessed(node).text
            return Fragment(f"atomic_{node.op}_{node.scope}(&{place}, {self(node.value)})")
        if node.op in MBARRIER_OPS:
            if node.block is not None:
                place = self.accessed(replace(node, block=None)).text
                return Fragment(f"{node.op}_cluster(&{place}, {self(node.value)}, {self(node.block)})")
            return Fragment(f"{node.op}(&{self.accessed(node).text}, {self(node.value)})")
        if node.order != "relaxed":
            name = "exchange_n" if node.op == "exchange" else f"fetch_{node.op}"
            how = f"__NV_ATOMIC_{node.order.upper()}, __NV_THREAD_SCOPE_{node.scope.upper()}"
            return Fragment(f"__nv_atomic_{name}(&{self.accessed(node).text}, {self(node.value)}, {how})")
        if node.op == "sub" and node.type not in (I32, U32):
            assert isinstance(node.type, Scalar)
            negative = ir.Op("neg", (node.value,), node.type, node.span)
            return self._Atomic(replace(node, op="add", value=negative))
        function = f"{UPDATES[node.op].cuda}{SCOPES[node.scope]}"
        return self.atomic(function, node, [node.value], node.op in ("min", "max"))

    def _CompareSwap(self, node: ir.CompareSwap) -> Fragment:
        if node.order != "relaxed":
            place = f"&{self.accessed(node).text}"
            name = f"compare_swap_{node.order}_{node.scope}"
            return Fragment(f"{name}({place}, {self(node.expected)}, {self(node.value)})")
        return self.atomic(f"atomicCAS{SCOPES[node.scope]}", node, [node.expected, node.value], False)

    def atomic(
        self, function: str, node: ir.Atomic | ir.CompareSwap, values: list[ir.Expr], signed_64: bool
    ) -> Fragment:
        """Print an atomic function. CUDA has the 64-bit forms for unsigned numbers; other types are cast to them."""
        place = f"&{self.accessed(node).text}"
        if node.type is F64 and function.startswith("atomicExch"):
            bits = f"{function}(({UNSIGNED_64}*){place}, __double_as_longlong({self(values[0])}))"
            return Fragment(f"__longlong_as_double({bits})")
        if node.type is I64 and not signed_64:
            texts = [f"({UNSIGNED_64}){self(v, UNARY)}" for v in values]
            return cast(I64, Fragment(f"{function}(({UNSIGNED_64}*){place}, {', '.join(texts)})"))
        return Fragment(f"{function}({place}, {', '.join(self(v) for v in values)})")

    # -------------------------------------------------------------- warp and block
    def mask(self, mask: ir.Expr) -> str:
        return hexadecimal(mask).text if isinstance(mask, ir.Const) else self(mask)

    def _Shuffle(self, node: ir.Shuffle) -> Fragment:
        function = "__shfl_sync" if node.mode == "idx" else f"__shfl_{node.mode}_sync"
        width = "" if node.width == WARP_SIZE else f", {node.width}"
        result = Fragment(f"{function}({self.mask(node.mask)}, {self(node.value)}, {self(node.lane)}{width})")
        return cast(node.type, result) if node.type.size < 4 and node.type not in HALVES else result

    def _Vote(self, node: ir.Vote) -> Fragment:
        if node.mode == "active":
            return Fragment("__activemask()")
        if node.mode in REDUCTIONS:
            return Fragment(f"__reduce_{node.mode}_sync({self.mask(node.mask)}, {self(node.value)})")
        function = {"ballot": "__ballot_sync", "match": "__match_any_sync", "match_all": "match_all"}.get(
            node.mode, f"__{node.mode}_sync"
        )
        result = Fragment(f"{function}({self.mask(node.mask)}, {self(node.value)})")
        return _nonzero(result) if node.mode in ("any", "all") else result

    def _Mma(self, node: ir.Mma) -> Fragment:
        return Fragment(f"{function(INSTRUCTIONS[node.instruction])}({self(node.a)}, {self(node.b)}, {self(node.c)})")

    def _MoveMatrix(self, node: ir.MoveMatrix) -> Fragment:
        """A move of registers, or with the load or the store of its rows folded into it, an instruction of memory."""
        value = node.value
        if node.mode != "load":
            return Fragment(f"{moved(node)}({self(value)})")
        if not isinstance(value, ir.Load):
            raise _not_printed("rows of a matrix in several elements of shared memory", node)
        return Fragment(f"{moved(node)}(&{self.accessed(value).text})")

    def _BulkCopy(self, node: ir.BulkCopy) -> Fragment:
        target, source = self.names[node.to.name], self.names[node.source.name]
        places = f"(uint4*){target} + {self(node.at, UNARY)}, (const uint4*){source} + {self(node.index, UNARY)}"
        if node.barrier is None:
            return Fragment(f"{store_helper(node)[0]}({places}, {self(node.bytes)})")
        return Fragment(f"bulk_copy({places}, {self(node.bytes)}, &{self.barrier(node)})")

    def barrier(self, node: ir.BulkCopy | ir.TensorCopy) -> str:
        assert node.barrier is not None
        completion = ir.Atomic("mbarrier_complete_tx", node.barrier.name, node.which, node.which, U64, node.span)
        return self.accessed(completion).text

    def _TensorCopy(self, node: ir.TensorCopy) -> Fragment:
        if node.words is not None:
            raise _not_printed("a tensor map that the kernel makes", node)
        shared, tensor = self.names[node.shared.name], self.names[node.tensor.name]
        barrier = [] if node.barrier is None else [f"&{self.barrier(node)}"]
        operands = [
            f"(uint4*){shared} + 8 * {self(node.at, UNARY)}",
            f"&{tensor}",
            *barrier,
            *map(self, node.coordinates),
        ]
        return Fragment(f"{tensor_helper(node)[0]}({', '.join(operands)})")

    def _Wgmma(self, node: ir.Wgmma) -> Fragment:
        a = [node.a] if node.in_a is None else [node.in_a, node.a]
        operands = [node.d, *a, node.in_b, node.b, node.add]
        return Fragment(f"{group_function(node)}({', '.join(self(own) for own in operands)})")

    def _AsyncOrder(self, node: ir.AsyncOrder) -> Fragment:
        return Fragment(order(node))

    def _WarpBarrier(self, node: ir.WarpBarrier) -> Fragment:
        full = isinstance(node.mask, ir.Const) and node.mask.value == FULL_MASK
        return Fragment(f"__syncwarp({'' if full else self.mask(node.mask)})")

    def _Fence(self, node: ir.Fence) -> Fragment:
        return Fragment(f"__threadfence{'_block' if node.scope == 'block' else ''}()")

    def _AsyncCommit(self, node: ir.AsyncCommit) -> Fragment:
        return Fragment("__pipeline_commit()")

    def _AsyncWait(self, node: ir.AsyncWait) -> Fragment:
        return Fragment(f"__pipeline_wait_prior({node.pending})")

    def _Sleep(self, node: ir.Sleep) -> Fragment:
        return Fragment(f"__nanosleep({self(node.time)})")

    def _Clock(self, node: ir.Clock) -> Fragment:
        return cast(I32, Fragment("clock()")) if node.type is I32 else Fragment("clock64()")

    def _Barrier(self, node: ir.Barrier) -> Fragment:
        if node.mode == "sync":
            return Fragment("__syncthreads()")
        if node.mode == "grid":
            return Fragment("cooperative_groups::this_grid().sync()")
        if node.mode in CLUSTER_BARRIERS:
            arrive, wait = "__cluster_barrier_arrive()", "__cluster_barrier_wait()"
            return Fragment({"cluster": f"{arrive}, {wait}", "cluster_arrive": arrive}.get(node.mode, wait))
        result = Fragment(f"__syncthreads_{node.mode}({self(node.value)})")
        return result if node.mode == "count" else _nonzero(result)

    def _Call(self, node: ir.Call) -> Fragment:
        name, measured = self.functions[node.function]
        arguments = [self(a) for a in node.args]
        for position in measured:
            array = node.args[position]
            assert isinstance(array, ir.ArrayRef)
            arguments.append(self.lengths[array.name])
        return Fragment(f"{name}({', '.join(arguments)})")


_OF_CLUSTERS = {
    "cluster_index": "__clusterIdx", "cluster_block": "__clusterRelativeBlockIdx", "cluster_dim": "__clusterDim",
    "grid_clusters": "__clusterGridDimInClusters", "cluster_rank": "__clusterRelativeBlockRank", "cluster_size": "__clusterSizeInBlocks",
}  # fmt: skip
"""CUDA's functions of indices of clusters."""


def _scope(node: ir.Load | ir.Store) -> str:
    return f"__NV_THREAD_SCOPE_{node.scope.upper()}"


def _not_printed(what: str, node: ir.Store | ir.MoveMatrix | ir.TensorCopy) -> CompileError:
    return CompileError([Diagnostic("compile", f"{what}: not printed as CUDA C++", node.span)])


def _nonzero(value: Fragment) -> Fragment:
    return Fragment(f"{value.text} != 0", INFIX["!="], "!=")


def format_of(type: Scalar) -> str:
    """printf's conversion for a type; floats with all their digits."""
    if type.is_float:
        return "%.17g" if type is F64 else "%.9g"
    if type.kind == "bool":
        return "%s"
    return ("%lld" if type.kind == "int" else "%llu") if type.size == 8 else ("%d" if type.kind == "int" else "%u")


def quoted(text: str) -> str:
    """A C++ string literal."""
    safe = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    printable = "".join(safe.get(c, c if c.isprintable() and c.isascii() else _octal(c)) for c in text)
    return f'"{printable}"'


def _octal(character: str) -> str:
    is_byte = "\udc80" <= character <= "\udcff"  # a byte of a path that is not UTF-8
    encoded = character.encode(errors="surrogateescape" if is_byte else "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in encoded)
