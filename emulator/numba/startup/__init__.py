"""The folder of `sitecustomize` for PYTHONPATH: `simtbed.numba_hook`."""
