"""The one pipeline from file to file: a command describes its stages, and each runs in a thread of its own.

A `Flow` begins with an iterable of items, such as blocks of a file, and goes through stages to one sink:

    flow = Flow(pieces(file))              # read: the first stage, in a thread of its own
    flow = flow.each(parse, workers=2)     # a function of one item: so many threads take items from one queue
    flow = flow.through(lay_out)           # a function from items to items, a generator: one thread, items in order
    flow = flow.each(solve, gpus=2)        # a thread a GPU; launches inside go to that GPU
    flow = flow.over_cluster(solve, dask)  # or the workers of a Dask cluster; lost ones are survived: (item, made) pairs
    flow = flow.beside(solve, dask, gpus)  # such pairs too, over a cluster if one is named, else here
    flow.each(formatted, workers=2).into(outputs["--output"].write)   # the sink runs in the calling thread

What holds for every flow:

- Order: items leave a stage in the order in which they came, whichever worker was done first.
- Memory: between two stages `AHEAD` items wait at most. A stage of w workers holds w items in work, and as many that are
  done and wait for an earlier one. So a flow holds at most `most_items` items, however long the file is; a stage's
  work decides how large an item is. A stage over a cluster holds as many more as `map_over_cluster` takes ahead.
- Errors: an error of a stage takes the place of its item. What stands before it reaches the sink, then the error is
  raised by `into`: the first error in the order of the file, the one that one stage after the other would have met.
  An error of the sink, or a signal in the calling thread, ends all stages at once. No thread is left when `into` ends;
  a stage that is at work finishes its item first. The sink writes to an output of `kernels.files.Outputs`, so nothing
  has its final name before all is well.
- Closing: a generator that is a stage is closed in its own thread, so what it opened by `with` is closed.
- Threads: stages run with the context of the caller (`on_gpu`, `on_cores`). They overlap where their work leaves the
  interpreter's lock: native functions, launches, NumPy's copies, packing and unpacking, reading and writing.
- How many: `workers_for(most)` is `simtbed.runtime.cores.current_cores()`, what `--threads` says, and no more than asked.

A sink tells a `Show` how far it is; `progress_of_records` of the reports shows records, their rate and the time left.
Blocks of whole records are read by `kernels.files.pieces`, which tells the part of the file that is read.
"""

from .flow import AHEAD, Flow, Show, workers_for

__all__ = ["AHEAD", "Flow", "Show", "workers_for"]
