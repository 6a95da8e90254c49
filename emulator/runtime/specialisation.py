"""A kernel for its Const values and types: what a launch must know of it at once, and its program, read when needed.

What the front end finds out is kept on disk under a digest of all that it depends on, so that a kernel whose machine
code is there too runs without being read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from .. import disk_cache
from ..errors import LaunchError, SimtbedError
from ..frontend.digest import Digest, digest
from ..frontend.signature import Signature, type_of, type_text
from ..language.functions import Kernel
from ..language.types import Array, Scalar, Value

if TYPE_CHECKING:
    from ..frontend.reader import Specialised
    from ..ir import nodes as ir

# The front end and the passes are imported where they are needed: most launches find their machine code on disk.


@dataclass(frozen=True)
class Summary:
    """What a launch asks of a program.

    parameters: by name, without the Const ones. changed: global arrays that it may write. ordered: whether its warps
    must take their turns. shared: bytes of its shared arrays.
    """

    name: str
    parameters: Mapping[str, Value | Array]
    changed: tuple[str, ...]
    ordered: bool
    shared: int

    @staticmethod
    def of(program: ir.Program) -> Summary:
        from .prepared import prepare

        prepared, kernel = prepare(program), program.kernel
        parameters = {param.name: param.type for param in kernel.params}
        return Summary(kernel.name, parameters, prepared.changed, prepared.ordered, prepared.shared)

    def encode(self) -> bytes:
        parameters = {name: type_text(type) for name, type in self.parameters.items()}
        return json.dumps([self.name, parameters, self.changed, self.ordered, self.shared]).encode()

    @staticmethod
    def decode(data: bytes) -> Summary:
        name, parameters, changed, ordered, shared = json.loads(data)
        return Summary(name, {n: type_of(t) for n, t in parameters.items()}, tuple(changed), ordered, shared)


class Specialisation:
    """One program. key: a digest of all that it depends on; None where that is not known."""

    def __init__(self, read: Callable[[], Specialised], key: str | None) -> None:
        self._read, self.key = read, key

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
        return Summary.decode(_kept("summary", self.key, lambda: Summary.of(self.program).encode()))


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
        return Signature.decode(_kept("signature", self.digest.key, lambda: read().encode()))

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


def specialisation_of(kernel: Kernel, consts: Mapping[str, Any], real: Scalar | None) -> Specialisation:
    """The kernel for these Const values and this meaning of Real, made once."""
    known = _known(kernel)
    named = tuple(sorted((name, _exactly(value)) for name, value in consts.items()))
    key = (real, named)
    if key not in known.specialisations:
        text = None
        if known.digest is not None:
            text = hashlib.sha256(repr((known.digest.key, str(real), named)).encode()).hexdigest()
        known.specialisations[key] = Specialisation(partial(_read, known, dict(consts), real), text)
    return known.specialisations[key]


def _read(known: _Known, consts: Mapping[str, Any], real: Scalar | None) -> Specialised:
    from ..frontend.reader import specialise

    if known.digest is not None and known.digest.stale:
        raise SimtbedError(
            f"a name that {known.kernel.__name__} uses stands for something else since it was launched: ask for counters "
            "and faults before that"
        )
    return specialise(known.kernel, consts, real)


def _exactly(value: Any) -> Any:
    """What tells Const values apart: True from 1, 1 from 1.0, 0.0 from -0.0."""
    if isinstance(value, tuple):
        return tuple(_exactly(item) for item in value)
    number = value.item() if hasattr(value, "item") else value
    return type(number).__name__, number.hex() if isinstance(number, float) else number


def _kept(what: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Something that the front end finds out, from the disk where it is there."""
    name = hashlib.sha256("\0".join((what, key, disk_cache.edition())).encode()).hexdigest() + ".json"
    found = disk_cache.load(name)
    if found is None:
        found = make()
        disk_cache.save(name, found)
    return found
