"""Kernels from generated source text."""

import hashlib
import importlib.util
from pathlib import Path

from ..language.functions import Kernel


def kernel_from_source(source: str, folder: Path, name: str = "generated") -> Kernel:
    """Return the kernel `name` of a module with this text, written to `folder` so that messages can quote its lines."""
    module_name = f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = folder / f"{module_name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, name)
    assert isinstance(kernel, Kernel)
    return kernel
