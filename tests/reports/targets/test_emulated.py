"""The libraries that a script imports, and that a machine without a GPU emulates."""

from pathlib import Path

import pytest
from simtbed.reports.targets import emulated

from tests.table_checks import check_each

SCRIPTS = {
    "import numpy as np, pycuda.autoinit, pycuda.gpuarray as ga": ("pycuda",),
    "import numpy, \\\n  cupy as cp": ("cupy",),
    "def f():\n  from pycuda import driver": ("pycuda",),
    "from pycuda.compiler import (\n  SourceModule)": ("pycuda",),
    "try: import cupy\nexcept ImportError: import numpy as cupy": ("cupy",),
    "import importlib\nx = importlib.import_module('pycuda.driver')": ("pycuda",),
    "x = __import__('cupy')": ("cupy",),
    "import cupy; import pycuda": ("pycuda", "cupy"),
    "\ufeffimport cupy": ("cupy",),
    "from numba import (\n  cuda,\n  jit)": ("numba",),
    "import numpy, numba.cuda": ("numba",),
    "import numba as nb\n@nb.cuda.jit\ndef f(): pass": ("numba",),
    "import numba_cuda_mlir": ("numba",),
    "import numba\n# numba.cuda\nx = 'import cupy'": (),
    "import cupyx, mypycuda, numba\nfrom . import pycuda\nimport torch; torch.cuda": (),
    "print '\\d": (),
}


def test_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated, "why_unavailable", lambda engine: "no GPU")

    def check(text: str) -> None:
        (tmp_path / "script.py").write_text(text, encoding="utf-8")
        assert emulated.emulated_libraries(tmp_path / "script.py", None) == SCRIPTS[text]

    check_each(SCRIPTS, check)
    (tmp_path / "helper.py").write_text("import script, other")
    (tmp_path / "other.py").write_text("import cupy")
    (tmp_path / "script.py").write_text("import sys\nfrom helper import f")
    assert emulated.emulated_libraries(tmp_path / "script.py", None) == ("cupy",)
