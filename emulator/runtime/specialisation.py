"""A kernel for its Const values and types: what a launch must know of it at once, and its program, read when needed.

What the front end finds out is kept on disk under a digest of all that it depends on, so that a kernel whose machine
code is there too runs without being read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import disk_cache
from ..errors import LaunchError, SimtbedError
from ..frontend.constants import exact
from ..frontend.digest import Digest, digest
from ..frontend.signature import Signature, type_of, type_text
from ..language.functions import Kernel
from ..language.types import FLAT, Array, Layout, Scalar, Value
from ..passes.needs import Needed
from .dynamic_shared import Declared, declared

if TYPE_CHECKING:
    from ..frontend.reader import Specialised
    from ..ir import nodes as ir

Found = TypeVar("Found", "Summary", Signature)

# The front end and the passes are imported where they are needed: most launches find their machine code on disk.


@dataclass(frozen=True)
class Summary:
    """What a launch asks of a program.

    parameters: by name, without the Const ones. changed: global arrays that it may write. ordered: whether its warps
    must take their turns. shared: bytes of its shared arrays. dynamic: those in dynamic shared memory.
    needs: words that not every device has. cooperative: whether its blocks wait for each other. waits: whether it has a
    loop that only waits (`passes.waiting`).
    """

    name: str
    parameters: Mapping[str, Value | Array]
    changed: tuple[str, ...]
    ordered: bool
    shared: int
    dynamic: tuple[Declared, ...]
    needs: tuple[Needed, ...]
    cooperative: bool
    waits: bool

    @staticmethod
    def of(program: ir.Program) -> Summary:
        from ..ir.nodes import While
        from ..ir.walk import statements
        from ..passes.capabilities import needed
        from ..passes.grids import is_cooperative
        from ..passes.waiting import may_stall, waits
        from .prepared import prepare

        prepared, kernel = prepare(program), program.kernel
        parameters = {param.name: param.type for param in kernel.params}
        body = prepared.program.kernel.body
        waiting = any(isinstance(stmt, While) and (waits(stmt) or may_stall(stmt)) for stmt in statements(body))
        found = declared(kernel), needed(program), is_cooperative(prepared.program.kernel), waiting
        return Summary(kernel.name, parameters, prepared.changed, prepared.ordered, prepared.shared, *found)

    def encode(self) -> bytes:
        parameters = {name: type_text(type) for name, type in self.parameters.items()}
        dynamic = [[array.name, array.size, array.count] for array in self.dynamic]
        needs = [[need.word, need.capability, need.place] for need in self.needs]
        rest = [dynamic, needs, self.cooperative, self.waits]
        return json.dumps([self.name, parameters, self.changed, self.ordered, self.shared, *rest]).encode()

    @staticmethod
    def decode(data: bytes) -> Summary:
        name, parameters, changed, ordered, shared, dynamic, needs, *rest = json.loads(data)
        types = {n: type_of(t) for n, t in parameters.items()}
        arrays = tuple(Declared(*array) for array in dynamic)
        needed = tuple(Needed(word, tuple(capability), place) for word, capability, place in needs)
        return Summary(name, types, tuple(changed), ordered, shared, arrays, needed, *rest)


class Specialisation:
    """One program. key: a digest of all that it depends on; None where that is not known. places: where the functions
    that it is read from stand, which decides its spans."""

    def __init__(self, read: Callable[[], Specialised], key: str | None, places: str = "") -> None:
        self._read, self.key, self.places = read, key, places

    @staticmethod
    def of_program(program: ir.Program) -> Specialisation:
        """Of a program that is there already."""
        from ..frontend.reader import Specialised

        return Specialisation(lambda: Specialised(program), None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its program, which another process need not read again."""
        return Specialisation.of_program, (self.program,)

    @cached_property
    def specialised(self) -> Specialised:
        return self._read()

    @property
    def is_read(self) -> bool:
        """Whether the front end has read the program; what it refused is not read."""
        return "specialised" in vars(self)

    @property
    def program(self) -> ir.Program:
        """Raises CompileError with every mistake in the kernel and the functions it calls."""
        return self.specialised.program

    @cached_property
    def summary(self) -> Summary:
        if self.key is None:
            return Summary.of(self.program)
        return _kept("summary", self.key, Summary.decode, lambda: Summary.of(self.program))


class _Known:
    """What is known of a kernel while the values of the names it uses stay."""

    def __init__(self, kernel: Kernel, found: Digest | None) -> None:
        self.kernel, self.digest = kernel, found
        self.signature = self._signature()
        self.specialisations: dict[Any, Specialisation] = {}

    def _signature(self) -> Signature:
        def read() -> Signature:
            from ..frontend.reader import signature

            return signature(self.kernel)

        if self.digest is None:
            return read()
        return _kept("signature", self.digest.key, Signature.decode, read)

    @property
    def stale(self) -> bool:
        """Whether a name now stands for something else."""
        if self.digest is not None:
            return self.digest.stale
        read = (one for one in self.specialisations.values() if one.is_read)
        return any(one.specialised.stale for one in read)


def _known(kernel: Kernel) -> _Known:
    # Kept in the kernel: what is known names the kernel, so a table of kernels would keep both for good.
    found: _Known | None = vars(kernel).get("_known")
    if found is None or found.stale:
        found = _Known(kernel, digest(kernel))
        vars(kernel)["_known"] = found
    return found


def signature_of(kernel: Kernel) -> Signature:
    """The kernel's parameters. Raises LaunchError for what is no kernel, CompileError for wrong annotations."""
    if not isinstance(kernel, Kernel):
        raise LaunchError(f"{getattr(kernel, '__name__', kernel)!r} is not a kernel: mark it @st.kernel")
    return _known(kernel).signature


def specialisation_of(
    kernel: Kernel, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, Layout]
) -> Specialisation:
    """The kernel for these Const values, this meaning of Real and these layouts of its global arrays, made once."""
    known = _known(kernel)
    named = tuple(sorted((name, exact(value)) for name, value in consts.items()))
    laid_out = tuple(sorted((name, astuple(layout)) for name, layout in layouts.items() if layout != FLAT))
    key = (real, named, laid_out)
    if key not in known.specialisations:
        text, places = None, ""
        if known.digest is not None:
            places = known.digest.places
            text = hashlib.sha256(repr((known.digest.key, str(real), named, laid_out)).encode()).hexdigest()
        known.specialisations[key] = Specialisation(
            partial(_read, known, dict(consts), real, dict(layouts)), text, places
        )
    return known.specialisations[key]


def _read(known: _Known, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, Layout]) -> Specialised:
    from ..frontend.reader import specialise

    if known.digest is not None and known.digest.stale:
        raise SimtbedError(
            f"a name that {known.kernel.__name__} uses stands for something else since it was launched: ask for counters "
            "and faults before that"
        )
    return specialise(known.kernel, consts, real, layouts)


def _kept(what: str, key: str, decode: Callable[[bytes], Found], make: Callable[[], Found]) -> Found:
    """Something that the front end finds out, from the disk where it is there."""
    name = hashlib.sha256("\0".join((what, key, disk_cache.edition())).encode()).hexdigest() + ".json"
    found = disk_cache.load(name, decode)
    if found is None:
        found = make()
        disk_cache.save(name, found.encode())
    return found
