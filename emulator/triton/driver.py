"""The driver of Triton: kernels are compiled for the device of the command, and launched here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase, decompose_descriptor, expand_signature, wrap_handle_tensordesc_impl
from triton.backends.nvidia.compiler import CUDABackend
from triton.backends.nvidia.driver import TMA_DTYPE_DEVICE_TO_HOST
from triton.compiler.compiler import IRSource
from triton.runtime import _allocation

from ..cubin_sections import Sections
from ..disk_cache import edition
from ..driver.memory import Pointer
from ..errors import LaunchError
from ..ir.names import component
from ..language.tensor_maps import ELEMENTS, MAP_BYTES, SWIZZLES, TensorMapForm
from ..llvmir.parameters import ArrayView
from ..machine.device import Device
from ..numba.kernel import KernelFacts, own_argument
from ..numba.launching import Launcher
from ..own_code import CubinCode, OwnArgument
from ..runtime.written_bytes import WrittenBytes
from ..span import Span
from .compiling import TENSOR_MAP, arguments_of, parameters_of, translated
from .devices import current_device
from .kernel import TritonKernel

_ENTRY = re.compile(r"^define ptx_kernel void @(\S+?)\(", re.MULTILINE)
_FLOAT_TYPES = 10  # of CUtensorMapDataType: from here on f32 that are flushed or rounded
_SIZE_BYTES = 8
_BUS_WIDTH = 5120  # bits, of memory with the bandwidth of the device


class EmulatedBackend(CUDABackend):  # type: ignore[misc]
    """Triton's compiler for NVIDIA's GPUs, whose cubin is followed by the LLVM IR and its size."""

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        compile_text, optimise, texts = stages["llir"], stages.get("ttir"), list[str]()

        def keep(source: Any, metadata: Any) -> str:
            texts.append(compile_text(source, metadata))
            return texts[-1]

        stages["llir"] = keep
        assemble = stages["cubin"]
        if optimise is not None:  # None for Gluon
            stages["ttir"] = lambda source, metadata: optimise(_inlined(source), metadata)

        def with_text(source: Any, metadata: Any) -> bytes:
            text = texts.pop().encode()
            return bytes(assemble(source, metadata)) + text + len(text).to_bytes(_SIZE_BYTES, "little")

        stages["cubin"] = with_text

    def hash(self) -> str:
        return f"simtbed-{edition()}-{self.target.arch}"


class Code(NamedTuple):
    """The code of a kernel: what Triton takes for a function on the device."""

    text: str
    cubin: bytes


def _inlined(module: Any) -> Any:
    """Return a module whose functions Triton's inliner inlines, those with `noinline` too: `llvmir` translates one function."""
    names, no = list[str](), ir.builder(module.context).get_bool_attr(False)

    def note(operation: Any) -> None:
        if operation.get_name() == "tt.func":
            names.append(operation.get_str_attr("sym_name"))

    module.walk(note)
    for name in names:
        module.get_function(name).set_attr("noinline", no)
    return module


class Utilities:
    """`driver.utils` of Triton."""

    def get_device_properties(self, number: int) -> Mapping[str, int]:
        device = current_device()
        return {
            "max_shared_mem": device.shared_per_block_optin,
            "max_num_regs": device.registers_per_block,
            "multiprocessor_count": device.sms,
            "warpSize": 32,
            "sm_clock_rate": device.clock * 1000,  # kHz
            "mem_clock_rate": int(device.bandwidth * 1e6 / (2 * _BUS_WIDTH / 8)),  # kHz
            "mem_bus_width": _BUS_WIDTH,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, number: int) -> tuple[Any, ...]:
        """Return the module, the function, its registers, spills and most threads: the function is its code."""
        end = len(binary) - _SIZE_BYTES
        start = end - int.from_bytes(binary[end:], "little")
        cubin = binary[:start]
        return (
            name,
            Code(binary[start:end].decode(), cubin),
            Sections.read(cubin).registers(name),
            0,
            current_device().threads_per_block,
        )

    def unload_module(self, module: Any) -> None:
        """Do nothing: no module is loaded."""


class KernelLauncher:
    """The launches of one compiled kernel. It has a translation for each set of tensors with elements before them in their storage."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source, self.metadata = source, metadata
        signature = dict(source.signature)
        described = getattr(metadata, "tensordesc_meta", None)
        expanded = {name: expand_signature([type], described, TENSOR_MAP) for name, type in signature.items()}
        self.arguments = arguments_of({
            component(name, str(number)) if number else name: type
            for name, types in expanded.items()
            for number, type in enumerate(types)
        })  # fmt: skip
        self.call = wrap_handle_tensordesc_impl(self._launch, signature, described, _expanded_descriptor)
        self._launchers: dict[tuple[frozenset[str], tuple[_Form, ...], Device], Launcher] = {}

    def __call__(
        self, x: int, y: int, z: int, stream: Any, code: Code, packed: Any, described: Any, *rest: Any
    ) -> None:
        enter, leave, *values = rest
        if enter is not None:
            enter(described)
        if x * y * z > 0:
            self.call((x, y, z), code, tuple(values))
        if leave is not None:
            leave(described)

    def _launch(self, grid: tuple[int, int, int], code: Code, values: Sequence[Any]) -> None:
        # Late: PyTorch may be imported after Triton.
        from .tensors import EMPTY, memory_of, tensor_of

        own = [(argument, _item(values, argument.path)) for argument in self.arguments]
        forms = tuple((argument.name, value.form) for argument, value in own if isinstance(value, TensorMap))
        own = [(argument, value.base if isinstance(value, TensorMap) else value) for argument, value in own]
        nothing = Pointer(0, 0, 0)
        tensors = [tensor_of(value) if argument.is_memory else None for argument, value in own]
        ready = [
            value if not argument.is_memory else nothing if tensor is None else memory_of(value, tensor)
            for (argument, value), tensor in zip(own, tensors, strict=True)
        ]
        offsets = frozenset(
            argument.name
            for argument, value in zip(self.arguments, ready, strict=True)
            if argument.is_pointer and value.low < value.address
        )
        scratch = self.metadata.global_scratch_size
        memory = nothing
        if scratch:
            count = grid[0] * grid[1] * grid[2] * self.metadata.num_ctas
            allocate = _allocation._allocator.get()
            allocated = allocate(
                scratch * count, self.metadata.global_scratch_align, 0
            )  # alive until the launch returns
            memory = memory_of(allocated, tensor_of(allocated))
        ready += [memory, nothing]
        launcher = self._launcher(code, offsets, forms, EMPTY.written)
        (x, y, z), blocks = grid, self.metadata.num_ctas  # a program is a cluster of blocks
        threads = 32 * self.metadata.num_warps, 1, 1
        launcher.launch(ready, (x * blocks, y, z), threads, self.metadata.shared, (blocks, 1, 1))

    def _launcher(
        self, code: Code, offsets: frozenset[str], forms: tuple[_Form, ...], written: WrittenBytes
    ) -> Launcher:
        key = offsets, forms, current_device()
        if key not in self._launchers:
            kernel = self._kernel(code, offsets, dict(forms))
            self._launchers[key] = Launcher(kernel, key[2], lambda address: 0, written)
        return self._launchers[key]

    def _kernel(self, code: Code, offsets: frozenset[str], forms: Mapping[str, TensorMapForm]) -> TritonKernel:
        entry = _ENTRY.search(code.text)
        assert entry is not None
        if isinstance(self.source, IRSource):
            span, name = Span(str(self.source.path), 1, 1, 1, 1), entry[1]
        else:
            function = self.source.fn
            line, name = function.def_file_line_number, function.__name__
            span = Span(function.file_name, line, function.def_file_col_number, line, 1)
        parameters = parameters_of(self.arguments, offsets, forms, self.metadata.global_scratch_size > 0)
        translation = translated(code.text, entry[1], name, span, parameters)
        places = {argument.name: number for number, argument in enumerate(self.arguments)}
        boxes = {own: ArrayView(places[own], 0, forms[own].element, 0) for own in translation.textures}
        arrays, cooperative = {**translation.arrays, **boxes}, self.metadata.launch_cooperative_grid
        facts = KernelFacts(name, parameters, arrays, translation.scalars, cooperative)
        arguments = [own_argument(index, facts) for index in range(len(parameters))]
        for name, form in forms.items():
            arguments[places[name]] = OwnArgument(MAP_BYTES, ((0, name),), form=form)
        own = CubinCode(
            kernel=entry[1],
            arguments=tuple(arguments),
            cubin=code.cubin,
            architecture=f"sm_{self.metadata.target.arch}",
        )
        return TritonKernel(facts, None, lambda: translation.program, own)


class TensorMap(NamedTuple):
    """A tensor descriptor as an argument. base: its tensor."""

    base: Any
    form: TensorMapForm


_Form = tuple[str, TensorMapForm]


def _expanded_descriptor(descriptor: Any, described: Mapping[str, Any] | None, *rest: Any) -> list[Any]:
    """Return the arguments of a tensor descriptor. described: its box, swizzle and element type; None for one without a tensor map.

    Raises LaunchError for a form that is not emulated.
    """
    if described is None:
        return decompose_descriptor(descriptor)  # type: ignore[no-any-return]
    type = TMA_DTYPE_DEVICE_TO_HOST[described["elem_type"]]
    if described["fp4_padded"] or described.get("is_im2col") or descriptor.round_f32_to_tf32 or type >= _FLOAT_TYPES:
        raise LaunchError("a tensor descriptor of fp4, tf32 or im2col is not supported: choose the device A100")
    size = described["elem_size"]
    form = TensorMapForm(
        ELEMENTS[type],
        tuple(map(int, descriptor.shape[::-1])),
        tuple(int(stride) * size for stride in descriptor.strides[-2::-1]),
        tuple(described["block_size"][::-1]),
        SWIZZLES[described["swizzle"]],
        "nan" if descriptor.padding == "nan" else "zero",
    )
    if problem := form.problem():
        raise LaunchError(f"a tensor descriptor is no tensor map: {problem}")
    return [TensorMap(descriptor.base, form), *descriptor.shape, *descriptor.strides]


def _item(values: Any, path: Sequence[int]) -> Any:
    for number in path:
        values = values[number]
    return values


class EmulatedDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver of one emulated device, whose tensors are PyTorch's."""

    def __init__(self) -> None:
        self.utils, self.launcher_cls = Utilities(), KernelLauncher

    @staticmethod
    def is_active() -> bool:
        return True

    def map_python_to_cpp_type(self, type: str) -> str:
        return type

    def get_current_target(self) -> Any:
        major, minor = current_device().compute_capability
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, number: int) -> None:
        """Do nothing: there is one device."""

    def get_current_stream(self, number: int) -> int:
        return 0

    def get_device_capability(self, number: int = 0) -> tuple[int, int]:
        return current_device().compute_capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None:
        """Do nothing: the emulators have no cache."""
