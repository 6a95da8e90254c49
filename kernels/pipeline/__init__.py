"""Pipelines from file to file: a command lists its stages, and each stage runs in its own threads.

A `Flow` starts with an iterable of items, such as blocks of a file, and passes them through stages to one sink:

    flow = Flow(pieces(file))                 # read: the first stage, in its own thread
    flow = flow.map(parse, workers=2)         # a function of one item; the threads share one queue
    flow = flow.through(arrange)              # a generator from items to items: one thread, items in order
    flow = flow.map(solve, gpus=2)            # one thread per GPU; its launches run on that GPU
    flow = flow.over_cluster(solve, dask)     # the workers of a Dask cluster, lost ones included: (item, result) pairs
    flow = flow.map_pairs(solve, dask, gpus)  # the same pairs, on a cluster if one is named, else locally
    flow.map(formatted, workers=2).into(outputs["--output"].write)   # the sink runs in the calling thread

Properties of every flow:

- Order: items leave a stage in their input order, independently of the workers.
- Memory: at most `AHEAD` items wait between two stages. A stage of w workers has w items in progress and as many finished ones
  that wait for an earlier item. A flow holds at most `max_items` items for any file length; the stages determine the size of an
  item. A stage over a cluster holds the additional items of `map_over_cluster`.
- Errors: an error of a stage replaces its item. The items before it reach the sink, then `into` raises the error: the first one
  in file order, as in sequential execution. An error of the sink, or a signal in the calling thread, ends all stages. No thread
  is left when `into` ends; a busy stage finishes its item first. The sink writes to an output of `kernels.files.Outputs`, so no
  file is replaced before the flow has succeeded.
- Closing: a generator is closed in its own thread, so its context managers exit there.
- Threads: stages run in the context of the caller (`on_gpu`, `on_cores`). They overlap in code that releases the interpreter's
  lock: native functions, launches, NumPy copies, compression, reading and writing.
- Number of threads: `workers_for(most)` is at most `simtbed.runtime.cores.current_cores()`, the value of `--threads`.

A sink reports progress to a `Show`; `progress_of_records` of the reports displays records, their rate and the remaining time.
`kernels.files.pieces` reads blocks of complete records and reports the fraction of the file already read.
"""

from .flow import AHEAD, Flow, Show, workers_for

__all__ = ["AHEAD", "Flow", "Show", "workers_for"]
