"""Compiled kernels: the interface and the cubin, cached on disk, so that a launch neither reads nor prints the kernel."""

import hashlib
import json
from dataclasses import asdict, dataclass

from ... import disk_cache
from ...runtime.engine import Request, Resources
from . import nvcc, own_code
from .interface import Interface


@dataclass(frozen=True)
class Binary:
    """A loadable kernel."""

    interface: Interface
    built: nvcc.Built


def binary(request: Request, arch: str) -> Binary:
    """Return a request's kernel for an architecture such as "sm_90". A kernel with a known digest is loaded from the cache, without the
    front end, the passes and the printer. Raises the errors of `build`."""
    name = _name(request, arch)
    loaded = None if name is None else disk_cache.load(name, _decode)
    if loaded is None:
        loaded = _compile(request, arch)
        if name is not None:
            disk_cache.save(name, _encode(loaded))
    return loaded


def _compile(request: Request, arch: str) -> Binary:
    if (own := request.specialisation.own_code) is not None:
        return Binary(*own_code.compiled(own, request, arch))
    from .printer import cuda_source  # late: most launches find their kernel on the disk

    source = cuda_source(request.program, request.block, request.maths, request.cluster)
    return Binary(source.interface, nvcc.build(source.with_lines(), source.kernel, arch))


def _name(request: Request, arch: str) -> str | None:
    """Return the name of the cache entry: a digest of everything that the cubin depends on, including source lines."""
    specialisation = request.specialisation
    if specialisation.key is None:
        return None
    inputs = (
        specialisation.key,
        specialisation.places,
        repr((request.block, request.cluster)),
        request.maths,
        arch,
        *nvcc.OPTIONS,
        nvcc.version(nvcc.find_nvcc()),
        disk_cache.edition(),
    )
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest() + ".kernel"


def _encode(loaded: Binary) -> bytes:
    built = loaded.built
    header = [loaded.interface.encode(), asdict(built.resources), built.compiler]
    return json.dumps(header).encode() + b"\n" + built.cubin


def _decode(data: bytes) -> Binary:
    header, _, cubin = data.partition(b"\n")
    interface, resources, compiler = json.loads(header)
    return Binary(Interface.decode(interface), nvcc.Built(cubin, Resources(**resources), compiler))
