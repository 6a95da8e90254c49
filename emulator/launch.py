"""Launching a kernel: arguments checked, program specialised, an engine run, the result in one object."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .engines.arrays import Buffer, Kept, Out, named, split
from .engines.engine import Dim3, Engine, Outcome, Request, Resources
from .errors import Diagnostic, LaunchError, SimtbedError, render
from .frontend.program import Signature, Specialised, signature, specialise
from .ir.types import FLOATS, SCALARS, Array, Scalar, Vector, from_dtype
from .lang import Kernel
from .machine import device as devices
from .machine.device import Device
from .machine.occupancy import Occupancy, occupancy
from .observe import checks as checkers
from .observe import schedules, suppressions
from .observe.counters import Counters
from .observe.events import Counts
from .passes import prepare

STEP_LIMIT = 1_000_000
EngineName = Literal["jit", "numpy", "cuda"]


@dataclass
class Result:
    """What a launch did. A global array the kernel writes is read as `result.name` or `result["name"]`.

    faults: what the emulator found wrong. remarks: what it found and does not hold against the kernel: writes of the
    same value, findings that a comment allows, and comments that allow nothing. printed: lines of the kernel's own `print`.
    milliseconds, resources: of the kernel on the GPU; None on an emulator.
    counts: int64[site, column] as `observe.events` names the columns, for the sites of the request's program.
    """

    buffers: Mapping[str, Buffer]
    counters: Counters | None
    faults: list[Diagnostic]
    remarks: list[Diagnostic]
    printed: list[str]
    milliseconds: float | None
    resources: Resources | None
    request: Request = field(repr=False)
    counts: Counts | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Buffer:
        if name not in self.buffers:
            written = ", ".join(self.buffers) or "nothing"
            raise SimtbedError(f"the kernel does not write {name}; it writes {written}")
        return self.buffers[name]

    def __getattr__(self, name: str) -> Buffer:
        if name.startswith("_") or name not in self.buffers:
            raise AttributeError(name)
        return self.buffers[name]

    @property
    def source(self) -> str:
        """The kernel as CUDA C++."""
        from .engines.cuda_source import cuda_source

        return cuda_source(self.request.program, self.request.block).text

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy on the request's device. Registers are known once a compiler has run (the cuda
        engine's result); before that they are taken not to limit."""
        request = self.request
        registers = self.resources.registers if self.resources else 0
        return occupancy(request.device, int(np.prod(request.block)), registers, self.shared_bytes)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.request.dynamic_shared + prepare(self.request.program).shared


class FaultError(SimtbedError):
    """The emulator found faults. `result` is what the launch did all the same."""

    def __init__(self, result: Result) -> None:
        super().__init__("\n".join(render(fault) for fault in result.faults))
        self.result = result


def launch(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    engine: EngineName = "jit",
    device: Device = devices.H200,
    shared: int = 0,
    counters: bool = True,
    step_limit: int = STEP_LIMIT,
    types: Mapping[str, str] | None = None,
    check: str | Iterable[str] = (),
    schedule: int | None = None,
    faults: Literal["raise", "return"] = "raise",
) -> Result:
    """Run `kernel` on `grid` blocks of `block` threads.

    args: every parameter by name. Global arrays are NumPy arrays of exactly the element's dtype (vectors: shape
    (n, lanes)), which are not modified, `Out(n, type)`, or `Kept(...)` arrays, which the next launch finds as this one
    leaves them. Scalars are checked for range. Const parameters take int, float, bool or tuples of them.
    shared: bytes of dynamic shared memory. step_limit: turns one execution of a loop may take.
    engine: "jit" (compiled, fast) and "numpy" (readable) emulate, with the same outputs, counters and faults; "cuda"
    runs on a GPU, where nothing is counted or checked.
    check: what an emulator looks for beyond what it always does: "all", or some of "bounds", "uninitialised", "races",
    "barriers", "arithmetic"; with "benign" races that write the same value are faults. Where races or uninitialised
    words are looked for, blocks run one after another. A line with `# simtbed: allow race - reason` is let pass.
    schedule: a seed; the launch is run again with blocks, and warps between barriers, in another order, and a result
    that differs is a fault.
    types: {"Real": "f32"} where no array tells. counters: whether to count.
    faults: "raise" a FaultError when the emulator finds any, or "return" them in the result.

    Raises CompileError (the kernel is not in the language), LaunchError (the arguments do not fit), FaultError.
    """
    if engine != "cuda":
        for given in args.values():
            if isinstance(given, Kept):
                given.fetch()
    request = prepare_request(
        kernel,
        grid=grid,
        block=block,
        args=args,
        device=device,
        shared=shared,
        counters=counters,
        step_limit=step_limit,
        types=types,
        check=check,
        schedule=schedule,
    )
    if engine == "cuda" and (request.checks or schedule is not None):
        raise LaunchError("a GPU is asked for nothing but results: check and schedule need an emulator, jit or numpy")
    outcome = _outcome(_engine(engine), request)
    found, remarks = suppressions.judge(outcome.faults, prepare(request.program).program.kernel, request.checks)
    for name in request.kept.keys() & outcome.buffers.keys():
        request.kept[name].replace(outcome.buffers.pop(name))
    result = Result(
        outcome.buffers,
        _counters(request, outcome),
        found,
        remarks,
        outcome.printed,
        outcome.milliseconds,
        outcome.resources,
        request,
        outcome.counts,
    )
    if result.faults and faults == "raise":
        raise FaultError(result)
    return result


def launch_together(
    launches: Iterable[tuple[Kernel, Mapping[str, Any]]], *, engine: EngineName = "jit", **how: Any
) -> list[Result]:
    """The results of launches that do not depend on each other: (kernel, its own arguments of `launch`), `how`: those
    that all share.

    With "cuda" they run side by side: copies and kernels overlap, and an array that is given to several launches is
    copied to the GPU once. No single time is measured there, no Kept array taken. Raises what `launch` raises, and
    OutOfMemory.
    """
    if engine != "cuda":
        return [launch(kernel, engine=engine, **how, **own) for kernel, own in launches]
    from .engines.cuda_together import run_together

    requests = [prepare_request(kernel, **how, **own) for kernel, own in launches]
    return [
        Result(outcome.buffers, None, outcome.faults, [], outcome.printed, None, outcome.resources, request)
        for request, outcome in zip(requests, run_together(requests), strict=True)
    ]


def prepare_request(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    device: Device = devices.H200,
    shared: int = 0,
    counters: bool = True,
    step_limit: int = STEP_LIMIT,
    types: Mapping[str, str] | None = None,
    check: str | Iterable[str] = (),
    schedule: int | None = None,
) -> Request:
    """The checked request `launch` gives to an engine. Parameters and errors as there."""
    grid3, block3 = _dim3(grid, "grid"), _dim3(block, "block")
    threads = int(np.prod(block3))
    if threads > device.threads_per_block:
        raise LaunchError(f"a block of {threads} threads, but {device.name} allows {device.threads_per_block}")
    found = _signature(kernel)
    _same_names(kernel, found, args)
    consts = {name: args[name] for name, kind in found.params.items() if kind == "const"}
    real = _real(kernel, found, args, types or {})
    program = _specialised(kernel, consts, real).program
    arguments: dict[str, Buffer | np.generic] = {}
    for param in program.kernel.params:
        if isinstance(param.type, Array):
            arguments[param.name] = _array(param.name, param.type, args[param.name])
        else:
            arguments[param.name] = _scalar(param.name, param.type, args[param.name])
    kept = {name: given for name, given in args.items() if isinstance(given, Kept)}
    if len({id(given) for given in kept.values()}) < len(kept):
        raise LaunchError(f"{kernel.__name__}: one Kept array is given for two parameters")
    blank = frozenset(name for name, given in args.items() if isinstance(given, Out) or getattr(given, "blank", False))
    request = Request(
        program,
        grid3,
        block3,
        arguments,
        shared,
        device,
        counters,
        step_limit,
        kept,
        blank,
        checkers.parse(check),
        schedule,
    )
    needed = shared + prepare(request.program).shared
    if needed > device.shared_per_block_optin:
        raise LaunchError(
            f"{kernel.__name__} needs {needed} bytes of shared memory a block, {device.name} has {device.shared_per_block_optin}"
        )
    return request


# ------------------------------------------------------------------ engines
def _outcome(engine: Engine, request: Request) -> Outcome:
    """Run a launch; with a schedule, in both orders."""
    if request.schedule is None:
        return engine.run(request)
    first, second = engine.run(replace(request, schedule=None)), engine.run(request)
    known = {(fault.kind, fault.span) for fault in first.faults}
    first.faults += [fault for fault in second.faults if (fault.kind, fault.span) not in known]
    kernel, how = prepare(request.program).program.kernel, (request.grid, request.block)
    differs = schedules.difference(kernel, first.buffers, second.buffers, request.schedule, *how)
    if differs is not None:
        first.faults.append(differs)
    return first


_ENGINES: dict[str, Engine] = {}


def _engine(name: str) -> Engine:
    if name not in _ENGINES:
        if name == "jit":
            from .engines.jit import JitEngine

            _ENGINES[name] = JitEngine()
        elif name == "numpy":
            from .engines.numpy_engine import NumpyEngine

            _ENGINES[name] = NumpyEngine()
        elif name == "cuda":
            from .engines.cuda_run import CudaEngine

            _ENGINES[name] = CudaEngine()
        else:
            raise LaunchError(f"no engine is called {name}; there are jit, numpy and cuda")
    return _ENGINES[name]


def _counters(request: Request, outcome: Outcome) -> Counters | None:
    if outcome.counts is None:
        return None
    sites = ((s.kind, s.span, s.size, s.costs) for s in prepare(request.program).sites)
    return Counters.of(sites, outcome.counts, request.device.sector)


# ------------------------------------------------------------------ programs, kept while their kernels live
_SIGNATURES: weakref.WeakKeyDictionary[Kernel, Signature] = weakref.WeakKeyDictionary()
_PROGRAMS: weakref.WeakKeyDictionary[Kernel, dict[Any, Specialised]] = weakref.WeakKeyDictionary()


def _signature(kernel: Kernel) -> Signature:
    if not isinstance(kernel, Kernel):
        raise LaunchError(f"{getattr(kernel, '__name__', kernel)!r} is not a kernel: mark it @st.kernel")
    if kernel not in _SIGNATURES:
        _SIGNATURES[kernel] = signature(kernel)
    return _SIGNATURES[kernel]


def _specialised(kernel: Kernel, consts: Mapping[str, Any], real: Scalar | None) -> Specialised:
    known = _PROGRAMS.setdefault(kernel, {})
    key = (real, tuple(sorted((name, type(value), value) for name, value in consts.items())))
    if key not in known or known[key].stale:
        known[key] = specialise(kernel, consts, real)
    return known[key]


# ------------------------------------------------------------------ arguments
def _dim3(given: int | tuple[int, ...], what: str) -> Dim3:
    sizes = (given,) if isinstance(given, int | np.integer) else tuple(given)
    if not 1 <= len(sizes) <= 3 or any(not isinstance(n, int | np.integer) or n < 1 for n in sizes):
        raise LaunchError(f"{what} is one to three positive integers, not {given!r}")
    x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
    return x, y, z


def _same_names(kernel: Kernel, found: Signature, args: Mapping[str, Any]) -> None:
    missing = [name for name in found.params if name not in args]
    extra = [name for name in args if name not in found.params]
    if missing:
        raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}")
    if extra:
        raise LaunchError(f"{kernel.__name__} has no parameter {', '.join(extra)}; it has {', '.join(found.params)}")


def _real(kernel: Kernel, found: Signature, args: Mapping[str, Any], types: Mapping[str, str]) -> Scalar | None:
    """The type Real stands for: as told, or as the arrays given for Global[Real] have it."""
    if unknown := [name for name in types if name != "Real"]:
        raise LaunchError(f"types decides Real only, not {', '.join(unknown)}")
    chosen = SCALARS.get(types["Real"]) if "Real" in types else None
    if "Real" in types and chosen not in FLOATS:
        raise LaunchError(f"Real is f32 or f64, not {types['Real']}")
    for name, kind in found.params.items():
        if not (isinstance(kind, tuple) and isinstance(kind[1], Array)):
            continue
        given = args[name]
        dtype = given.dtype if isinstance(given, Kept) else np.asarray(given).dtype
        type = named(given.type) if isinstance(given, Out) else from_dtype(dtype)
        if type not in FLOATS:
            raise LaunchError(f"{kernel.__name__}: {name} is Global[Real], f32 or f64, not {type or dtype}")
        if chosen is not None and type is not chosen:
            raise LaunchError(f"{kernel.__name__}: Real is {chosen}, but {name} is {type}")
        chosen = type
    return chosen


def _array(name: str, type: Array, given: Any) -> Buffer:
    element = type.element
    assert isinstance(element, Scalar | Vector)
    scalar, lanes = split(element)
    if isinstance(given, Out):
        if named(given.type) != element:
            raise LaunchError(f"{name} is Global[{element}], not {named(given.type)}")
        return given.zeros()
    array: npt.NDArray[Any] = given.form if isinstance(given, Kept) else np.asarray(given)
    if array.dtype != scalar.dtype:
        raise LaunchError(
            f"{name} is Global[{element}], the array given is {array.dtype}; convert it: .astype(np.{scalar.dtype})"
        )
    if lanes and (array.ndim != 2 or array.shape[1] != lanes):
        raise LaunchError(f"{name} is Global[{element}], its array has the shape (n, {lanes}), not {array.shape}")
    if not lanes and array.ndim != 1:
        raise LaunchError(
            f"{name} is one-dimensional in a kernel, its array has the shape {array.shape}; pass .ravel()"
        )
    return np.ascontiguousarray(array)


def _scalar(name: str, type: Scalar | Vector, given: Any) -> np.generic:
    if isinstance(type, Vector):
        raise LaunchError(f"{name} is {type}; a kernel's vectors come in arrays")
    if isinstance(given, np.ndarray) or not isinstance(given, bool | int | float | np.generic):
        raise LaunchError(f"{name} is {type}, a number is expected, not {given!r}")
    number = given.item() if isinstance(given, np.generic) else given
    if type.kind == "bool":
        fits = isinstance(number, bool)
    elif type.is_integer:
        low, high = type.range
        fits = isinstance(number, int) and not isinstance(number, bool) and low <= number <= high
    else:
        fits = not isinstance(number, bool)
    if not fits:
        raise LaunchError(f"{name} is {type}, {given!r} does not fit")
    return type.dtype.type(number)  # type: ignore[no-any-return]
