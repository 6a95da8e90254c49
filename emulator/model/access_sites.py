"""Sites of accesses: those of a kernel's source, and the memory instructions of its SASS."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiled.opcode_classes import Access
from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.updates import SUMS
from ..ir.walk import statements
from ..language.types import Array, Scalar
from ..runtime.engine import Request
from ..sass.state import State
from .access_lines import Kind

Words = npt.NDArray[np.int64]

_ALLOCATION_ALIGNMENT = 1 << 21
"""Alignment of arrays in bytes: pages of device memory."""
_KINDS: dict[str, dict[Any, int]] = {
    "global": {
        Operation.LOAD: Kind.LOAD, Operation.STORE: Kind.STORE, Operation.ATOMIC: Kind.ATOMIC, Operation.REDUCTION: Kind.ATOMIC,
    },
    "local": {Operation.LOAD: Kind.LOCAL_LOAD, Operation.STORE: Kind.LOCAL_STORE},
    "constant": {Operation.LOAD: Kind.CONSTANT},
    "texture": {Operation.LOAD: Kind.CONSTANT},
}  # fmt: skip
_KIND_OF_EFFECT = {
    "global_load": Kind.LOAD, "global_store": Kind.STORE, "global_atomic": Kind.ATOMIC, "global_reduction": Kind.ATOMIC,
    "local_load": Kind.LOCAL_LOAD, "local_store": Kind.LOCAL_STORE, "constant_load": Kind.CONSTANT,
    "bulk_load": Kind.BULK_LOAD, "bulk_store": Kind.STORE,
}  # fmt: skip


@dataclass(frozen=True)
class AccessSites:
    """Sites. base, size, kinds, local_bytes, float_add: int64[site], as in `access_lines.Sites`. fetching: atomics with used
    results. site_of: int64[instruction], of SASS."""

    base: Words
    size: Words
    kinds: Words
    local_bytes: Words
    float_add: Words
    fetching: frozenset[int]
    site_of: Words


def sites_of_sass(accesses: Sequence[Access]) -> AccessSites:
    """Return the memory instructions of a kernel. accesses: of its instructions. Elements are those of an array at address 0."""
    accessing = [n for n, one in enumerate(accesses) if one.kind in _KIND_OF_EFFECT]
    site_of = np.full(len(accesses), -1)
    site_of[accessing] = np.arange(len(accessing))
    base, size, kinds, local_bytes, float_add = np.zeros((5, len(accessing)), np.int64)
    size[:] = [accesses[n].size for n in accessing]
    kinds[:] = [_KIND_OF_EFFECT[accesses[n].kind] for n in accessing]
    local_bytes[:] = State.local_stride
    float_add[:] = [accesses[n].adds_floats for n in accessing]
    fetching = frozenset(site for site, n in enumerate(accessing) if accesses[n].kind == "global_atomic")
    return AccessSites(base, size, kinds, local_bytes, float_add, fetching, site_of)


def sites_of_source(request: Request, threads: int) -> AccessSites:
    """Return the sites of a launch's source. threads: resident on the GPU, which have local arrays."""
    sites, body = request.prepared.sites, request.prepared.program.kernel.body
    adds = {
        stmt.span
        for stmt in statements(body)
        if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic) and stmt.value.op in SUMS
    }
    types = {p.name: p.type for p in request.program.kernel.params if isinstance(p.type, Array)}
    sizes = {name: max(1, len(np.asarray(request.arguments[name])) * type.element.size) for name, type in types.items()}
    local_sizes = {}
    for stmt in statements(body):
        if isinstance(stmt, ir.Alloc) and stmt.type.space in ("local", "constant"):
            types[stmt.array] = stmt.type
            sizes[stmt.array] = (stmt.type.length or 1) * stmt.type.element.size
            if stmt.type.space == "local":
                local_sizes[stmt.array] = -(-sizes[stmt.array] // 4) * 4
                sizes[stmt.array] = local_sizes[stmt.array] * threads
    pages = [-(-size // _ALLOCATION_ALIGNMENT) for size in sizes.values()]
    starts = _ALLOCATION_ALIGNMENT * np.cumsum([1, *pages])
    addresses = dict(zip(sizes, starts.tolist(), strict=False))
    base, size, kinds, local_bytes, float_add = np.zeros((5, len(sites)), np.int64)
    for number, site in enumerate(sites):
        if site.array in addresses:
            base[number], size[number] = addresses[site.array], site.size
            local_bytes[number] = local_sizes.get(site.array, 0)
            kinds[number] = _KINDS[types[site.array].space][site.access.operation]
            element = types[site.array].element
            is_float = isinstance(element, Scalar) and element.is_float
            float_add[number] = kinds[number] == Kind.ATOMIC and is_float and site.span in adds
    atomics = np.flatnonzero(kinds == Kind.ATOMIC).tolist()
    fetching = frozenset(n for n in atomics if sites[n].access.operation is Operation.ATOMIC)
    return AccessSites(base, size, kinds, local_bytes, float_add, fetching, np.zeros(0, np.int64))
