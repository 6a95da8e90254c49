"""Specialisation of a kernel for its Const values and types: a summary for launches, and the program, read on demand.

The front end's summaries are cached on disk under a digest of their dependencies, so a kernel with cached machine
code runs without being read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import disk_cache
from ..errors import Diagnostic, LaunchError
from ..frontend.constants import exact
from ..frontend.launchable import LaunchableKernel
from ..frontend.python_kernel import PythonKernel
from ..frontend.signature import Signature
from ..language.functions import Kernel
from ..language.types import FLAT, Array, ArrayLayout, Scalar, Value
from ..passes.intervals import Counters
from ..passes.needs import Needed
from .arrays import MappedArray
from .dynamic_shared import DeclaredArray, declared_arrays

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from ..own_code import OwnCode

Content = TypeVar("Content")
AnyKernel = Kernel | LaunchableKernel
"""A kernel of the language, or of another front end."""

# The front end and the passes are imported on demand: most launches find their machine code on disk.


@dataclass(frozen=True)
class ProgramSummary:
    """Facts about a program needed by a launch.

    parameters: by name, without Const ones. changed: global arrays it may write. ordered: whether its warps must run
    in order. shared: bytes of its static shared arrays. dynamic: arrays in dynamic shared memory. needs: words with
    a minimum compute capability. cooperative: whether its blocks wait for the grid; clusters: for their cluster, or access the memory of
    its other blocks. waits: whether it has a loop
    that only waits (`passes.waiting`). lanes_wait: whether lanes of a warp may wait for each other (`passes.lane_progress`).
    counters: its loops whose counter wraps for some launch.
    """

    name: str
    parameters: Mapping[str, Value | Array]
    changed: tuple[str, ...]
    ordered: bool
    shared: int
    dynamic: tuple[DeclaredArray, ...]
    needs: tuple[Needed, ...]
    cooperative: bool
    clusters: bool
    waits: bool
    lanes_wait: bool
    counters: Counters

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Names of the global arrays."""
        return tuple(name for name, type in self.parameters.items() if isinstance(type, Array))

    @staticmethod
    def from_program(program: ir.Program) -> ProgramSummary:
        from ..ir.nodes import While
        from ..ir.walk import statements
        from ..passes.capabilities import needed
        from ..passes.counter_bounds import counters
        from ..passes.grids import has_clusters, is_cooperative
        from ..passes.lane_progress import lanes_wait
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
            has_clusters(prepared.program.kernel),
            waiting,
            lanes_wait(prepared.program.kernel),
            counters(program),
        )
        return ProgramSummary(kernel.name, parameters, prepared.changed, prepared.ordered, prepared.shared, *facts)


class Specialisation:
    """One specialised program. key: a digest of its dependencies; None if unknown. places, text, words, own_code,
    tolerated: as in `LaunchableKernel`."""

    def __init__(
        self,
        read: Callable[[], ir.Program],
        key: str | None,
        places: str = "",
        text: str | None = None,
        words: Mapping[str, str] | None = None,
        own_code: OwnCode | None = None,
        tolerated: frozenset[str] = frozenset(),
    ) -> None:
        self._read, self.key, self.places, self.text, self.words = read, key, places, text, dict(words or {})
        self.own_code, self.tolerated = own_code, tolerated
        self._limited: dict[tuple[int, ...], Specialisation] = {}

    @staticmethod
    def of_program(
        program: ir.Program, tolerated: frozenset[str] = frozenset(), own_code: OwnCode | None = None
    ) -> Specialisation:
        """Return the specialisation of an existing program."""
        return Specialisation(lambda: program, None, own_code=own_code, tolerated=tolerated)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the program: another process need not read it again."""
        return _unpickled, (self.program, self.text, self.words, self.own_code, self.tolerated)

    def judged(self, findings: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the findings, where a race of copies is benign if the kernel tolerates those: its threads hold copies of elements."""
        kind = "benign race"
        return [
            Diagnostic(
                kind, f"benign {one.message}", one.span, one.notes, one.count, one.related, (), one.array, one.blocks
            )
            if one.of_copies and kind in self.tolerated and one.kind == "race"
            else one
            for one in findings
        ]

    def ending(self, findings: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the findings of kinds that a GPU does not tolerate."""
        return [finding for finding in findings if finding.kind not in self.tolerated]

    def limited(self, loops: tuple[int, ...]) -> Specialisation:
        """Return the program with a limit for the counters of these loops (`passes.counter_bounds`), created once."""
        if not loops:
            return self
        if loops not in self._limited:
            key = self.key and hashlib.sha256(repr((self.key, loops)).encode()).hexdigest()
            limited = self._limited[loops] = Specialisation(
                partial(self._read_limited, loops),
                key,
                self.places,
                self.text,
                self.words,
                self.own_code,
                self.tolerated,
            )
            limited.summary = self.summary
        return self._limited[loops]

    def _read_limited(self, loops: tuple[int, ...]) -> ir.Program:
        from ..passes.counter_bounds import limited

        return limited(self.program, loops)

    @cached_property
    def program(self) -> ir.Program:
        """The program. Raises CompileError with every error in the kernel and its device functions."""
        return self._read()

    @cached_property
    def summary(self) -> ProgramSummary:
        if self.key is None:
            return ProgramSummary.from_program(self.program)
        return _cached_object("summary", self.key, lambda: ProgramSummary.from_program(self.program))


def _unpickled(
    program: ir.Program,
    text: str | None,
    words: Mapping[str, str],
    own_code: OwnCode | None,
    tolerated: frozenset[str],
) -> Specialisation:
    return Specialisation(lambda: program, None, "", text, words, own_code, tolerated)


class KernelFacts:
    """The cached facts about a kernel, valid while it is unchanged.

    plans: its launch plans (`plans.LaunchPlan`), by key. valued: the parameters whose values decide the program. has_defaults:
    whether some need not be given. recent_options: of a launch, and their types.
    """

    def __init__(self, kernel: LaunchableKernel) -> None:
        self.kernel, self.key = kernel, kernel.digest()
        read = kernel.signature
        self.signature = read() if self.key is None else _cached_object("signature", self.key, read)
        self.specialisations: dict[Any, Specialisation] = {}
        self.plans: dict[Any, Any] = {}
        self.recent_options: tuple[tuple[Any, ...], tuple[type, ...]] = ((), ())
        self.has_defaults = bool(kernel.defaults)
        self.valued = frozenset(
            name
            for name, own in self.signature.parameters.items()
            if own.type is None or (isinstance(own.type, Array) and own.type.space == "constant")
        )


def facts_of(kernel: AnyKernel) -> KernelFacts:
    """Return the facts about the kernel as it is now. Raises CompileError for wrong annotations."""
    # Stored in the kernel: the facts refer to the kernel, so a global table would keep both alive.
    facts: KernelFacts | None = kernel.__dict__.get("_facts")
    if facts is None or facts.kernel.stale:
        facts = KernelFacts(PythonKernel(kernel) if isinstance(kernel, Kernel) else kernel)
        vars(kernel)["_facts"] = facts
    return facts


def bound(kernel: AnyKernel, args: Any) -> tuple[AnyKernel, Any]:
    """Return the kernel for the types of these arguments, and its arguments. Raises LaunchError for other objects."""
    if not isinstance(kernel, AnyKernel):
        raise LaunchError(f"{getattr(kernel, '__name__', kernel)!r} is not a kernel: mark it @st.kernel")
    return kernel.bind(args) if isinstance(kernel, LaunchableKernel) else _with_tensors(kernel, args)


def _with_tensors(kernel: Kernel, args: Any) -> tuple[AnyKernel, Any]:
    """Return the kernel for the forms of its tensor maps, created once, and arguments with their arrays."""
    values = args.values() if isinstance(args, Mapping) else args if isinstance(args, tuple | list) else ()
    if MappedArray not in map(type, values):
        return kernel, args
    parameters = signature_of(kernel).parameters
    named = args if isinstance(args, Mapping) else dict(zip(parameters, args, strict=False))
    forms = {}
    for name, value in named.items():
        if not isinstance(value, MappedArray):
            continue
        type_ = parameters[name].type if name in parameters else None
        if not isinstance(type_, Array) or type_.element is not value.form.element:
            raise LaunchError(f"{name} is no st.TensorMap[st.{value.form.element}]: give another argument")
        forms[name] = value.form
    variants = vars(kernel).setdefault("_with_tensors", {})
    own = variants.get(key := tuple(sorted(forms.items())))
    if own is None or own.stale:
        own = variants[key] = PythonKernel(kernel, forms)
    return own, {name: value.array if name in forms else value for name, value in named.items()}


def signature_of(kernel: AnyKernel) -> Signature:
    """Return the kernel's parameters. Raises CompileError for wrong annotations."""
    return facts_of(kernel).signature


def known_facts(kernel: AnyKernel) -> KernelFacts:
    """Return the facts about a kernel whose signature was read in this launch: it is unchanged."""
    facts: KernelFacts = vars(kernel)["_facts"]
    return facts


def specialisation_of(
    kernel: AnyKernel,
    consts: Mapping[str, Any],
    real: Scalar | None,
    layouts: Mapping[str, ArrayLayout],
    host_calls: bool = False,
) -> Specialisation:
    """Return the kernel's specialisation for these Const values, this type of Real and these array layouts, created once.

    host_calls: whether a kernel of the language may call Python functions.
    """
    facts = facts_of(kernel)
    named = tuple(sorted((name, exact(value)) for name, value in consts.items()))
    array_layouts = tuple(sorted((name, astuple(layout)) for name, layout in layouts.items() if layout != FLAT))
    key = (real, named, array_layouts, *["host calls"] * host_calls)
    if key not in facts.specialisations:
        text = None
        if facts.key is not None:
            text = hashlib.sha256(repr((facts.key, str(real), *key[1:])).encode()).hexdigest()
        source = facts.kernel
        specialise = source.with_host_calls if host_calls and isinstance(source, PythonKernel) else source.specialise
        read = partial(specialise, dict(consts), real, dict(layouts))
        own = source.own_code(consts)
        facts.specialisations[key] = Specialisation(
            read, text, source.places, source.text, source.words, own, source.tolerated
        )
    return facts.specialisations[key]


def _cached_object(what: str, key: str, make: Callable[[], Content]) -> Content:
    """Return a result of the front end, from the disk cache if available."""
    return disk_cache.cached_object("\0".join((what, key, disk_cache.edition())), make)
