"""Barriers in shared memory in CUDA C++: functions with the PTX instructions `mbarrier`.

A wait returns a word whose bit 63 differs from that of its operand if the phase is complete (`ir.mbarriers.is_complete`).
"""

from ...ir import nodes as ir
from ...language.types import HALVES

_U64 = "unsigned long long"
_HEAD = "static __device__ __forceinline__"
_PLACE = '"r"((unsigned int)__cvta_generic_to_shared(barrier))'


def _arrival(name: str, instruction: str, operand: str) -> str:
    return f"""\
{_HEAD} {_U64} {name}({_U64}* barrier, {_U64} operand) {{{{
    {_U64} state;
    asm volatile("{instruction} %0, [%1]{", %2" * bool(operand)};" : "=l"(state) : {_PLACE}{operand} : "memory");
    return state;
}}}}
"""


def _update(name: str, instruction: str) -> str:
    return f"""\
{_HEAD} {_U64} {name}({_U64}* barrier, {_U64} bytes) {{{{
    asm volatile("{instruction} [%0], %1;" :: {_PLACE}, "r"((unsigned int)bytes) : "memory");
    return 0;
}}}}
"""


def _wait(name: str, operand: str) -> str:
    instruction = name.replace("mbarrier_", "mbarrier.").replace("_parity", ".parity")
    return f"""\
{_HEAD} {_U64} {name}({_U64}* barrier, {_U64} state) {{{{
    unsigned int complete;
    asm volatile("{{{{ .reg .pred p; {instruction}.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }}}}"
        : "=r"(complete) : {_PLACE}, {operand} : "memory");
    return state ^ ({_U64})complete << 63;
}}}}
"""


HELPERS = {
    "mbarrier_init": f"""\
{_HEAD} void mbarrier_init({_U64}* barrier, {_U64} count) {{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: {_PLACE}, "r"((unsigned int)count) : "memory");
}}
{_HEAD} void mbarrier_inval({_U64}* barrier) {{
    asm volatile("mbarrier.inval.shared.b64 [%0];" :: {_PLACE} : "memory");
}}
""",
    "mbarrier_arrive": f"""\
#if __CUDA_ARCH__ >= 900
{_arrival("mbarrier_arrive", "mbarrier.arrive.shared.b64", ', "r"((unsigned int)operand)')}\
#else
{_arrival("mbarrier_arrive", "mbarrier.arrive.shared.b64", "")}\
#endif
""",
    "mbarrier_arrive_expect_tx": _arrival(
        "mbarrier_arrive_expect_tx", "mbarrier.arrive.expect_tx.shared.b64", ', "r"((unsigned int)operand)'
    ),
    "mbarrier_expect_tx": _update("mbarrier_expect_tx", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64"),
    "mbarrier_complete_tx": _update("mbarrier_complete_tx", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64"),
    "mbarrier_test_wait": _wait("mbarrier_test_wait", '"l"(state)'),
    "mbarrier_test_wait_parity": _wait("mbarrier_test_wait_parity", '"r"((unsigned int)(state >> 63))'),
    "mbarrier_try_wait_parity": _wait("mbarrier_try_wait_parity", '"r"((unsigned int)(state >> 63))'),
}
"""By operation; the first one also ends barriers. Texts are formats, but that of the first."""


def _of_cluster(instruction: str, semantics: str) -> str:
    """Return an operation on the barrier of the block of a rank in the cluster; PTX returns no state then."""
    name = instruction.replace(".", "_")
    target = "_, [remote]" if "arrive" in instruction else "[remote]"
    return f"""\
{_HEAD} void mbarrier_{name}_cluster({_U64}* barrier, {_U64} operand, int rank) {{{{
    asm volatile("{{{{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
        " mbarrier.{instruction}.{semantics}.cluster.shared::cluster.b64 {target}, %2; }}}}"
        :: {_PLACE}, "r"(rank), "r"((unsigned int)operand) : "memory");
}}}}
"""


HELPERS |= {
    "mbarrier_arrive_cluster": _of_cluster("arrive", "release"),
    "mbarrier_arrive_expect_tx_cluster": _of_cluster("arrive.expect_tx", "release"),
    "mbarrier_expect_tx_cluster": _of_cluster("expect_tx", "relaxed"),
    "mbarrier_complete_tx_cluster": _of_cluster("complete_tx", "relaxed"),
}
BULK_COPY = f"""\
{_HEAD} void bulk_copy(uint4* target, const uint4* source, int bytes, {_U64}* barrier) {{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"((unsigned int)__cvta_generic_to_shared(target)), "l"(__cvta_generic_to_global(source)), "r"(bytes), {_PLACE} : "memory");
}}
"""


def store_helper(node: ir.BulkCopy) -> tuple[str, str]:
    """Return the name and the text of the function of a copy to global memory."""
    name, instruction = "bulk_store", "cp.async.bulk.global.shared::cta.bulk_group"
    if node.op is not None:
        name = f"bulk_{node.op}_{node.element}"
        instruction = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{node.op}.{_reduced_type(node)}"
    return (
        name,
        f"""\
{_HEAD} void {name}(uint4* target, const uint4* source, int bytes) {{
    asm volatile("{instruction} [%0], [%1], %2;"
        :: "l"(__cvta_generic_to_global(target)), "r"((unsigned int)__cvta_generic_to_shared(source)), "r"(bytes) : "memory");
}}
""",
    )


def _reduced_type(node: ir.BulkCopy) -> str:
    type = node.element
    if type.is_float:
        return "noftz." * (node.op == "add" and type in HALVES) + str(type)
    kind = "b" if node.op in ("and", "or", "xor") else "s" if type.kind == "int" else "u"
    return f"{kind}{8 * type.size}"


def tensor_helper(node: ir.TensorCopy) -> tuple[str, str]:
    """Return the name and the text of the function of a copy of a box."""
    rank, stores = len(node.coordinates), node.barrier is None
    name = f"tensor_{node.op or ('store' if stores else 'copy')}_{rank}d"
    first = 2 if stores else 3
    numbers = ", ".join(f"%{first + n}" for n in range(rank))
    operands = ['"r"((unsigned int)__cvta_generic_to_shared(shared))', '"l"(tensor)', *([] if stores else [_PLACE])]
    operands += [f'"r"(c{n})' for n in range(rank)]
    if stores:
        mode = f"{node.op}.tile.bulk_group" if node.op else "bulk_group"
        instruction = f"{rank}d.global.shared::cta.{mode} [%1, {{{numbers}}}], [%0];"
    else:
        mode = "shared::cluster.global.mbarrier::complete_tx::bytes"
        instruction = f"{rank}d.{mode} [%0], [%1, {{{numbers}}}], [%2];"
    params = ["uint4* shared", "const CUtensorMap* tensor", *([] if stores else [f"{_U64}* barrier"])]
    params += [f"int c{n}" for n in range(rank)]
    return (
        name,
        f"""\
{_HEAD} void {name}({", ".join(params)}) {{
    asm volatile("cp.{"reduce." if node.op else ""}async.bulk.tensor.{instruction}"
        :: {", ".join(operands)} : "memory");
}}
""",
    )
