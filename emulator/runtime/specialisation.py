"""Specialisation of a kernel for its Const values and types: a summary for launches, and the program, read on demand.

The front end's summaries are cached on disk under a digest of their dependencies, so a kernel with cached machine
code runs without being read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import disk_cache
from ..errors import LaunchError, SimtbedError
from ..frontend.constants import exact
from ..frontend.digest import Digest, digest
from ..frontend.signature import Signature, type_of, type_text
from ..language.functions import Kernel
from ..language.types import FLAT, Array, ArrayLayout, Scalar, Value
from ..passes.intervals import Counters
from ..passes.needs import Needed
from .dynamic_shared import DeclaredArray, declared_arrays

if TYPE_CHECKING:
    from ..frontend.reader import Specialised
    from ..ir import nodes as ir

Content = TypeVar("Content", "ProgramSummary", Signature)

# The front end and the passes are imported on demand: most launches find their machine code on disk.


@dataclass(frozen=True)
class ProgramSummary:
    """Facts about a program needed by a launch.

    parameters: by name, without Const ones. changed: global arrays it may write. ordered: whether its warps must run
    in order. shared: bytes of its static shared arrays. dynamic: arrays in dynamic shared memory. needs: words with
    a minimum compute capability. cooperative: whether its blocks wait for each other. waits: whether it has a loop
    that only waits (`passes.waiting`). counters: its loops whose counter wraps for some launch.
    """

    name: str
    parameters: Mapping[str, Value | Array]
    changed: tuple[str, ...]
    ordered: bool
    shared: int
    dynamic: tuple[DeclaredArray, ...]
    needs: tuple[Needed, ...]
    cooperative: bool
    waits: bool
    counters: Counters

    @staticmethod
    def from_program(program: ir.Program) -> ProgramSummary:
        from ..ir.nodes import While
        from ..ir.walk import statements
        from ..passes.capabilities import needed
        from ..passes.counter_bounds import counters
        from ..passes.grids import is_cooperative
        from ..passes.waiting import may_stall, waits
        from .prepared import prepare

        prepared, kernel = prepare(program), program.kernel
        parameters = {param.name: param.type for param in kernel.params}
        body = prepared.program.kernel.body
        waiting = any(isinstance(stmt, While) and (waits(stmt) or may_stall(stmt)) for stmt in statements(body))
        facts = (
            declared_arrays(kernel),
            needed(program),
            is_cooperative(prepared.program.kernel),
            waiting,
            counters(program),
        )
        return ProgramSummary(kernel.name, parameters, prepared.changed, prepared.ordered, prepared.shared, *facts)

    def encode(self) -> bytes:
        parameters = {name: type_text(type) for name, type in self.parameters.items()}
        dynamic = [[array.name, array.size, array.count] for array in self.dynamic]
        needs = [[need.word, need.capability, need.place] for need in self.needs]
        rest = [dynamic, needs, self.cooperative, self.waits, self.counters.encode()]
        return json.dumps([self.name, parameters, self.changed, self.ordered, self.shared, *rest]).encode()

    @staticmethod
    def decode(data: bytes) -> ProgramSummary:
        name, parameters, changed, ordered, shared, dynamic, needs, cooperative, waits, loops = json.loads(data)
        types = {n: type_of(t) for n, t in parameters.items()}
        arrays = tuple(DeclaredArray(*array) for array in dynamic)
        needed = tuple(Needed(word, tuple(capability), place) for word, capability, place in needs)
        rest = cooperative, waits, Counters.decode(loops)
        return ProgramSummary(name, types, tuple(changed), ordered, shared, arrays, needed, *rest)


class Specialisation:
    """One specialised program. key: a digest of its dependencies; None if unknown. places: file and line of its
    functions, which determine its spans."""

    def __init__(self, read: Callable[[], Specialised], key: str | None, places: str = "") -> None:
        self._read, self.key, self.places = read, key, places
        self._limited: dict[tuple[int, ...], Specialisation] = {}

    @staticmethod
    def of_program(program: ir.Program) -> Specialisation:
        """Return the specialisation of an existing program."""
        from ..frontend.reader import Specialised

        return Specialisation(lambda: Specialised(program), None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the program: another process need not read it again."""
        return Specialisation.of_program, (self.program,)

    def limited(self, loops: tuple[int, ...]) -> Specialisation:
        """Return the program with a limit for the counters of these loops (`passes.counter_bounds`), created once."""
        if not loops:
            return self
        if loops not in self._limited:
            key = self.key and hashlib.sha256(repr((self.key, loops)).encode()).hexdigest()
            limited = self._limited[loops] = Specialisation(partial(self._read_limited, loops), key, self.places)
            limited.summary = self.summary
        return self._limited[loops]

    def _read_limited(self, loops: tuple[int, ...]) -> Specialised:
        from ..passes.counter_bounds import limited

        return replace(self.specialised, program=limited(self.program, loops))

    @cached_property
    def specialised(self) -> Specialised:
        return self._read()

    @property
    def is_read(self) -> bool:
        """Whether the front end has read the program; a refused program does not count."""
        return "specialised" in vars(self)

    @property
    def program(self) -> ir.Program:
        """The program. Raises CompileError with every error in the kernel and its device functions."""
        return self.specialised.program

    @cached_property
    def summary(self) -> ProgramSummary:
        if self.key is None:
            return ProgramSummary.from_program(self.program)
        return _cached("summary", self.key, ProgramSummary.decode, lambda: ProgramSummary.from_program(self.program))


class _KernelFacts:
    """The cached facts about a kernel, valid while the names it uses are unchanged."""

    def __init__(self, kernel: Kernel, source_digest: Digest | None) -> None:
        self.kernel, self.digest = kernel, source_digest
        self.signature = self._signature()
        self.specialisations: dict[Any, Specialisation] = {}

    def _signature(self) -> Signature:
        def read() -> Signature:
            from ..frontend.reader import signature

            return signature(self.kernel)

        if self.digest is None:
            return read()
        return _cached("signature", self.digest.key, Signature.decode, read)

    @property
    def stale(self) -> bool:
        """Whether a name now refers to another object."""
        if self.digest is not None:
            return self.digest.stale
        read = (specialisation for specialisation in self.specialisations.values() if specialisation.is_read)
        return any(specialisation.specialised.stale for specialisation in read)


def _facts_of(kernel: Kernel) -> _KernelFacts:
    # Stored in the kernel: the facts refer to the kernel, so a global table would keep both alive.
    facts: _KernelFacts | None = vars(kernel).get("_facts")
    if facts is None or facts.stale:
        facts = _KernelFacts(kernel, digest(kernel))
        vars(kernel)["_facts"] = facts
    return facts


def signature_of(kernel: Kernel) -> Signature:
    """Return the kernel's parameters. Raises LaunchError for other objects, CompileError for wrong annotations."""
    if not isinstance(kernel, Kernel):
        raise LaunchError(f"{getattr(kernel, '__name__', kernel)!r} is not a kernel: mark it @st.kernel")
    return _facts_of(kernel).signature


def specialisation_of(
    kernel: Kernel, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
) -> Specialisation:
    """Return the kernel's specialisation for these Const values, this type of Real and these array layouts, created once."""
    facts = _facts_of(kernel)
    named = tuple(sorted((name, exact(value)) for name, value in consts.items()))
    array_layouts = tuple(sorted((name, astuple(layout)) for name, layout in layouts.items() if layout != FLAT))
    key = (real, named, array_layouts)
    if key not in facts.specialisations:
        text, places = None, ""
        if facts.digest is not None:
            places = facts.digest.places
            text = hashlib.sha256(repr((facts.digest.key, str(real), named, array_layouts)).encode()).hexdigest()
        facts.specialisations[key] = Specialisation(
            partial(_read, facts, dict(consts), real, dict(layouts)), text, places
        )
    return facts.specialisations[key]


def _read(
    facts: _KernelFacts, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
) -> Specialised:
    from ..frontend.reader import specialise

    if facts.digest is not None and facts.digest.stale:
        raise SimtbedError(
            f"a name that {facts.kernel.__name__} uses refers to another object since the launch: read counters and "
            "faults before changing it"
        )
    return specialise(facts.kernel, consts, real, layouts)


def _cached(what: str, key: str, decode: Callable[[bytes], Content], make: Callable[[], Content]) -> Content:
    """Return a result of the front end, from the disk cache if available."""
    name = hashlib.sha256("\0".join((what, key, disk_cache.edition())).encode()).hexdigest() + ".json"
    result = disk_cache.load(name, decode)
    if result is None:
        result = make()
        disk_cache.save(name, result.encode())
    return result
