"""Start of Python with the import hook for `numba.cuda`, then with the environment's own `sitecustomize`."""

import importlib.util
import os
import sys

import simtbed.numba_hook  # noqa: F401  it acts when it is imported

_folder = os.path.dirname(os.path.abspath(__file__))
_path = sys.path[:]
sys.path[:] = [folder for folder in _path if os.path.abspath(folder) != _folder]
try:
    _spec = importlib.util.find_spec("sitecustomize")
finally:
    sys.path[:] = _path
if _spec is not None and _spec.loader is not None and _spec.origin != __file__:
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    _spec.loader.exec_module(_module)
