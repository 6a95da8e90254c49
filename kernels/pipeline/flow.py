"""Flow of items through threaded stages, from an iterable to a sink."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from simtbed import map_over_cluster
from simtbed.runtime.cores import current_cores
from simtbed.runtime.gpus import on_gpu

from .channel import Channel, Closed, Failure

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 1
"""Maximum number of items that wait between two stages."""

Show = Callable[[str, int, float | None], None]
"""Progress callback: current step, if there are several; number of finished records; fraction of the file already read,
None if its size is unknown."""

Item = TypeVar("Item")
Output = TypeVar("Output")


def workers_for(most: int) -> int:
    """Return the number of threads of a stage: at most `most` and at most the cores of this process."""
    return max(1, min(current_cores(), most))


class Flow(Generic[Item]):
    """Items and their stages. Nothing runs before `into` or the first iteration."""

    def __init__(self, source: Iterable[Item]) -> None:
        self._source: Iterable[Any] = source
        self._stages: list[_Stage] = []

    def through(self, work: Callable[[Iterator[Item]], Iterable[Output]]) -> Flow[Output]:
        """Append a stage of one thread: `work` maps the iterator of items to an iterable of any length."""
        return cast("Flow[Output]", self._append(_Stage(work, 1, whole=True)))

    def map(self, work: Callable[[Item], Output], workers: int = 1, gpus: int = 0) -> Flow[Output]:
        """Append a stage that applies `work` to each item. workers: threads with a common queue. gpus: one thread per
        GPU; its launches run on that GPU."""
        return cast("Flow[Output]", self._append(_Stage(work, max(workers, gpus), whole=False, gpus=gpus)))

    def over_cluster(self, work: Callable[[Item], Output], cluster: str | Client) -> Flow[tuple[Item, Output]]:
        """Append a stage of the workers of a Dask cluster, given by address or client: pairs of each item and `work` of
        it, in order. See `simtbed.map_over_cluster`. `work` (sent once to each worker), items and results are
        pickled; items are not sent back."""

        def answers(items: Iterator[Item]) -> Iterator[tuple[Item, Output]]:
            with closing(cast("Generator[tuple[Item, Output]]", map_over_cluster(items, work, cluster))) as results:
                yield from results

        return self.through(answers)

    def map_pairs(
        self, work: Callable[[Item], Output], cluster: str = "", gpus: int = 0, workers: int = 1
    ) -> Flow[tuple[Item, Output]]:
        """Append a stage that yields pairs of each item and `work` of it: on a cluster if one is named, else with one
        thread per GPU, or with `workers` threads."""
        if cluster:
            return self.over_cluster(work, cluster)
        return self.map(lambda item: (item, work(item)), workers=gpus or workers, gpus=gpus)

    def _append(self, stage: _Stage) -> Flow[Any]:
        longer: Flow[Any] = Flow(self._source)
        longer._stages = [*self._stages, stage]
        return longer

    @property
    def max_items(self) -> int:
        """Maximum number of items in memory, in any form: in progress, finished or waiting, including the sink's item."""
        return 2 + AHEAD + sum(2 * stage.workers - 1 + AHEAD for stage in self._stages)

    def into(self, sink: Callable[[Item], object]) -> None:
        """Pass every result to the sink, in this thread. Raise the first error of the stages or the sink."""
        with closing(iter(self)) as items:
            for item in items:
                sink(item)

    def __iter__(self) -> Any:
        """Yield the results. Closing the generator ends the flow."""
        running = _Running(self._source, self._stages)
        try:
            while (entry := running.last.take()) is not None:
                item = entry[1]
                if isinstance(item, Failure):
                    raise item.error
                del entry  # otherwise the item would live until the next one arrives
                yield item
                del item
        finally:
            running.end()


class _Stage:
    """A stage of a flow.

    work: function of all items (`whole`) or of one. workers: number of threads.
    """

    def __init__(self, work: Callable[[Any], Any], workers: int, whole: bool, gpus: int = 0) -> None:
        self.work, self.workers, self.whole, self.gpus = work, workers, whole, gpus

    @property
    def capacity(self) -> int:
        """Maximum number of finished items while an earlier one is missing."""
        return self.workers - 1 + AHEAD


class _Running:
    """The threads of a running flow. last: channel of its results."""

    def __init__(self, source: Iterable[Any], stages: list[_Stage]) -> None:
        self.channels = [Channel(AHEAD), *(Channel(stage.capacity) for stage in stages)]
        self.last = self.channels[-1]
        self.threads: list[threading.Thread] = []
        jobs: list[Callable[[], None]] = [lambda: _produce(source, self.channels[0])]
        for number, stage in enumerate(stages):
            jobs += [_job(stage, worker, *self.channels[number : number + 2]) for worker in range(stage.workers)]
        try:
            for job in jobs:
                thread = threading.Thread(target=copy_context().run, args=(job,), daemon=True)
                thread.start()
                self.threads.append(thread)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Close all channels and join all threads."""
        for channel in self.channels:
            channel.close()
        for thread in self.threads:
            thread.join()


def _job(stage: _Stage, worker: int, incoming: Channel, outgoing: Channel) -> Callable[[], None]:
    if stage.whole:
        return lambda: _produce(stage.work(_items(incoming)), outgoing)

    def work() -> None:
        with on_gpu(worker) if stage.gpus else nullcontext():
            _work(stage, incoming, outgoing)

    return work


def _produce(items: Iterable[Any], outgoing: Channel) -> None:
    """Put all items; close the generator in this thread."""
    number = 0
    try:
        iterator = iter(items)
        try:
            for item in iterator:
                outgoing.put(number, item)
                number += 1
                del item  # otherwise it would live until the next item
        finally:
            if isinstance(iterator, Generator):
                iterator.close()
        outgoing.end(number)
    except Closed:
        pass
    except BaseException as error:
        _fail(outgoing, number, error)


def _items(incoming: Channel) -> Iterator[Any]:
    """Yield the items of a channel; raise its error."""
    while (entry := incoming.take()) is not None:
        item = entry[1]
        if isinstance(item, Failure):
            raise item.error
        del entry
        yield item
        del item


def _work(stage: _Stage, incoming: Channel, outgoing: Channel) -> None:
    """Process items until there are none."""
    try:
        while (entry := incoming.take()) is not None:
            number, item = entry
            del entry
            try:
                result = item if isinstance(item, Failure) else stage.work(item)
            except BaseException as error:
                result = Failure(error)
            del item
            if isinstance(result, Failure):
                incoming.close()  # no further item is started
            outgoing.put(number, result)
            if isinstance(result, Failure):
                return
            del result
        outgoing.end(incoming.total)
    except Closed:
        pass


def _fail(outgoing: Channel, number: int, error: BaseException) -> None:
    with suppress(Closed):
        outgoing.put(number, Failure(error))
