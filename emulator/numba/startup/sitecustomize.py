"""Start of Python with the import hook for `numba.cuda` and Triton, then with the environment's own `sitecustomize`.

Every Python with this folder in PYTHONPATH reads this file: also one without simtbed, and one of another version.
"""

import os
import sys


def _load_hook():
    # type: () -> None
    """Execute `simtbed.numba_hook` of this environment, if it has one, without an import of simtbed."""
    specs = (finder.find_spec("simtbed", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    for folder in next((list(spec.submodule_search_locations or ()) for spec in specs if spec), []):
        path = os.path.join(folder, "numba_hook.py")
        if os.path.exists(path):
            from importlib.machinery import ModuleSpec, SourceFileLoader

            name = "simtbed.numba_hook"
            loader = SourceFileLoader(name, path)
            sys.modules[name] = module = type(sys)(name)
            module.__spec__, module.__package__, module.__file__ = (
                ModuleSpec(name, loader, origin=path),
                "simtbed",
                path,
            )
            loader.exec_module(module)


_own = sys.modules.pop("sitecustomize", None)
_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _folder]
if os.environ.get("SIMTBED_NUMBA") or os.environ.get("SIMTBED_TRITON"):
    _load_hook()
try:
    __import__("sitecustomize")  # the environment's own
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise
    if _own is not None:
        sys.modules["sitecustomize"] = _own
