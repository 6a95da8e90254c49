"""Kernels of Python functions, `language.functions.Kernel`, under the protocol of launches."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import SimtbedError
from ..language.functions import Kernel
from ..language.tensor_maps import TensorMapForm
from ..language.types import ArrayLayout, Scalar
from .digest import digest
from .launchable import LaunchableKernel
from .signature import Signature

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from .reader import Specialised

# The reader is imported on demand: most launches find their machine code on disk.


class PythonKernel(LaunchableKernel):
    """A Python function and the objects that its names refer to at one time. tensors: forms of its tensor maps, by parameter."""

    def __init__(self, kernel: Kernel, tensors: Mapping[str, TensorMapForm] = MappingProxyType({})) -> None:
        self.kernel, self.tensors, self.__name__ = kernel, tensors, kernel.__name__
        self._digest = digest(kernel)
        self.places = "" if self._digest is None else self._digest.places
        self._read: list[Specialised] = []

    @property
    def defaults(self) -> Mapping[str, Any]:
        return self.kernel.defaults

    @property
    def stale(self) -> bool:
        """Whether a name now refers to another object."""
        if self._digest is not None:
            return self._digest.stale
        return any(one.stale for one in self._read)

    def signature(self) -> Signature:
        from .reader import signature

        return signature(self.kernel)

    def specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        return self._specialise(consts, real, layouts, host_calls=False)

    def with_host_calls(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout]
    ) -> ir.Program:
        """Return the program, of which a statement may call a Python function (`ir.nodes.HostCall`)."""
        return self._specialise(consts, real, layouts, host_calls=True)

    def _specialise(
        self, consts: Mapping[str, Any], real: Scalar | None, layouts: Mapping[str, ArrayLayout], host_calls: bool
    ) -> ir.Program:
        from .reader import specialise

        if self._digest is not None and self._digest.stale:
            raise SimtbedError(
                f"a name that {self.__name__} uses refers to another object since the launch: read counters and "
                "faults before changing it"
            )
        result = specialise(self.kernel, {**consts, **self.tensors}, real, layouts, host_calls)
        self._read.append(result)
        return result.program

    def digest(self) -> str | None:
        if self._digest is None or not self.tensors:
            return None if self._digest is None else self._digest.key
        return sha256(repr((self._digest.key, sorted(self.tensors.items()))).encode()).hexdigest()
