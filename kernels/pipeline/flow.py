"""A flow of items through stages, each in threads of its own, from an iterable to a sink."""

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
"""Items that wait between two stages."""

Show = Callable[[str, int, float | None], None]
"""Takes what is known of a flow at work: what is being done, where that is one of several steps; the records that are
done; the part of the file that is read, None where its size is not known."""

Item = TypeVar("Item")
Made = TypeVar("Made")


def workers_for(most: int) -> int:
    """Threads for a stage that has use for so many: no more than cores that this process is to use."""
    return max(1, min(current_cores(), most))


class Flow(Generic[Item]):
    """Items, and the stages they go through; nothing runs before `into`, or before the first item is asked for."""

    def __init__(self, source: Iterable[Item]) -> None:
        self._source: Iterable[Any] = source
        self._stages: list[_Stage] = []

    def through(self, work: Callable[[Iterator[Item]], Iterable[Made]]) -> Flow[Made]:
        """A stage of one thread: `work` is given all items, and gives as many or as few others as it likes."""
        return cast("Flow[Made]", self._with(_Stage(work, 1, whole=True)))

    def each(self, work: Callable[[Item], Made], workers: int = 1, gpus: int = 0) -> Flow[Made]:
        """A stage of so many threads that take items from one queue: `work` of each. gpus: a thread for each, in which
        launches go to it."""
        return cast("Flow[Made]", self._with(_Stage(work, max(workers, gpus), whole=False, gpus=gpus)))

    def over_cluster(self, work: Callable[[Item], Made], cluster: str | Client) -> Flow[tuple[Item, Made]]:
        """A stage of the workers of a Dask cluster, called by its address or a client: each item, in order, with `work` of it, as
        `simtbed.map_over_cluster` has it. Work, which goes to each worker once, items and what is made of them are
        pickled; items stay here and need not come back."""

        def answers(items: Iterator[Item]) -> Iterator[tuple[Item, Made]]:
            with closing(cast("Generator[tuple[Item, Made]]", map_over_cluster(items, work, cluster))) as found:
                yield from found

        return self.through(answers)

    def beside(
        self, work: Callable[[Item], Made], cluster: str = "", gpus: int = 0, workers: int = 1
    ) -> Flow[tuple[Item, Made]]:
        """Each item with `work` of it: by the workers of a cluster where one is named, otherwise in a thread a GPU, or in
        so many threads."""
        if cluster:
            return self.over_cluster(work, cluster)
        return self.each(lambda item: (item, work(item)), workers=gpus or workers, gpus=gpus)

    def _with(self, stage: _Stage) -> Flow[Any]:
        longer: Flow[Any] = Flow(self._source)
        longer._stages = [*self._stages, stage]
        return longer

    @property
    def most_items(self) -> int:
        """Items, in all their forms together, that are held at a time: in work, done, or waiting, the sink's one too."""
        return 2 + AHEAD + sum(2 * stage.workers - 1 + AHEAD for stage in self._stages)

    def into(self, sink: Callable[[Item], object]) -> None:
        """Give every item that comes out to the sink, in this thread. Raises the first error of the stages or the sink."""
        with closing(iter(self)) as items:
            for item in items:
                sink(item)

    def __iter__(self) -> Any:
        """What comes out, as a generator: who stops early closes it."""
        running = _Running(self._source, self._stages)
        try:
            while (taken := running.last.take()) is not None:
                item = taken[1]
                if isinstance(item, Failure):
                    raise item.error
                del taken  # or the item would live until the next one is there
                yield item
                del item
        finally:
            running.end()


class _Stage:
    """work: of all items (`whole`) or of one. workers: threads."""

    def __init__(self, work: Callable[[Any], Any], workers: int, whole: bool, gpus: int = 0) -> None:
        self.work, self.workers, self.whole, self.gpus = work, workers, whole, gpus

    @property
    def room(self) -> int:
        """Items that are done, of which the first may be missing."""
        return self.workers - 1 + AHEAD


class _Running:
    """The threads of a flow. last: where its items come out."""

    def __init__(self, source: Iterable[Any], stages: list[_Stage]) -> None:
        self.channels = [Channel(AHEAD), *(Channel(stage.room) for stage in stages)]
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
        """All threads have ended."""
        for channel in self.channels:
            channel.close()
        for thread in self.threads:
            thread.join()


def _job(stage: _Stage, worker: int, incoming: Channel, outgoing: Channel) -> Callable[[], None]:
    if stage.whole:
        return lambda: _produce(stage.work(_taken(incoming)), outgoing)

    def work() -> None:
        with on_gpu(worker) if stage.gpus else nullcontext():
            _work(stage, incoming, outgoing)

    return work


def _produce(items: Iterable[Any], outgoing: Channel) -> None:
    """Put all items; an iterator that can be closed is, in this thread."""
    number = 0
    try:
        iterator = iter(items)
        try:
            for item in iterator:
                outgoing.put(number, item)
                number += 1
                del item  # or it would live until the next one is made
        finally:
            if isinstance(iterator, Generator):
                iterator.close()
        outgoing.end(number)
    except Closed:
        pass
    except BaseException as error:
        _fail(outgoing, number, error)


def _taken(incoming: Channel) -> Iterator[Any]:
    """The items of a channel; its error where one is."""
    while (taken := incoming.take()) is not None:
        item = taken[1]
        if isinstance(item, Failure):
            raise item.error
        del taken
        yield item
        del item


def _work(stage: _Stage, incoming: Channel, outgoing: Channel) -> None:
    """Make something of one item after the other, until there are none."""
    try:
        while (taken := incoming.take()) is not None:
            number, item = taken
            del taken
            try:
                made = item if isinstance(item, Failure) else stage.work(item)
            except BaseException as error:
                made = Failure(error)
            del item
            if isinstance(made, Failure):
                incoming.close()  # nothing is begun any more
            outgoing.put(number, made)
            if isinstance(made, Failure):
                return
            del made
        outgoing.end(incoming.total)
    except Closed:
        pass


def _fail(outgoing: Channel, number: int, error: BaseException) -> None:
    with suppress(Closed):
        outgoing.put(number, Failure(error))
