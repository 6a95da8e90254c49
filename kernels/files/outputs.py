"""What a command writes: all of its files whole, or none of them changed."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from simtbed import SimtbedError

from .bgzf import BgzfWriter
from .places import STANDARD, STDIN, STDOUT, descriptor_of, failure, flush_standard_output, identities, status
from .signals import check, forget, held, register
from .text import printable
from .waiting import temporary
from .writeback import begin_to_write

SUFFIX = ".unfinished"
LONGEST_NAME = 180
"""Bytes of a file's name that its unfinished one repeats: with what is added it stays a name."""
BUFFER, AT_ONCE = 1 << 20, 1 << 25
"""Bytes that are written at a time, and that the disk begins with at a time."""
OTHER_PACKINGS = (".bz2", ".xz", ".zst")
"""Ends of names that promise a packing that is read, but not written."""


class Outputs:
    """The outputs of a command, by what the command line calls them; `-` is standard output, None is left out.

    Entering it refuses, with SimtbedError, an output that is an input or another output or cannot be written. Leaving
    it writes all of them; after an error nothing has changed. A regular file is replaced by a new one with its mode; a
    link leads to the new file. Anything else, such as a pipe, is written when all is well. Names in .gz are packed, as BGZF.
    """

    def __init__(self, targets: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
        self.targets = {name: path for name, path in targets.items() if path is not None}
        self.inputs = [path for path in inputs if path is not None]
        self.files: dict[str, BinaryIO] = {}
        self._kept: dict[io.BufferedIOBase, _Regular | _Special] = {}
        self._stack = ExitStack()

    @property
    def take_stdout(self) -> bool:
        """Whether an output is the standard one."""
        return any(_number(path) == STDOUT for path in self.targets.values())

    def __enter__(self) -> Outputs:
        self._refuse_overlaps()
        for path in self.targets.values():
            if path.name.endswith(OTHER_PACKINGS):
                raise SimtbedError(f"{printable(path)}: of packed outputs only .gz is written, as BGZF")
        with ExitStack() as stack:
            for name, path in self.targets.items():
                number = _number(path)
                there = status(path, STDOUT)
                regular = number is None and (there is None or stat.S_ISREG(there.st_mode))
                kept = _Regular(path) if regular else _Special(path, number)
                stack.callback(kept.discard)
                buffer = stack.enter_context(io.BufferedWriter(kept, BUFFER))
                self._kept[buffer] = kept
                self.files[name] = cast(BinaryIO, buffer)
                if path.name.endswith(".gz"):
                    self.files[name] = cast(BinaryIO, stack.enter_context(BgzfWriter(cast(BinaryIO, buffer))))
            self._stack = stack.pop_all()
        return self

    def __getitem__(self, name: str) -> BinaryIO:
        return self.files[name]

    def get(self, name: str) -> BinaryIO | None:
        """The file, where one is wanted."""
        return self.files.get(name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            try:
                if error is None:
                    self._finish()
            finally:
                for kept in self._kept.values():
                    kept.abandoned = True

    def _finish(self) -> None:
        for file in self.files.values():
            if isinstance(file, BgzfWriter):
                file.close()
        regular = [kept for kept in self._kept.values() if isinstance(kept, _Regular)]
        for buffer in self._kept:
            buffer.flush()
        for kept in [*regular, *(kept for kept in self._kept.values() if not isinstance(kept, _Regular))]:
            kept.close_whole()
        _rename(regular)

    def _refuse_overlaps(self) -> None:
        known = {identity: (path, "the input") for path in self.inputs for identity in identities(path, STDIN)}
        standard = [path for path in self.inputs if path == STANDARD]
        if len(standard) > 1:
            raise SimtbedError("standard input can be read once: two inputs are '-'")
        taken: dict[int, str] = {}
        for name, path in self.targets.items():
            number = _number(path)
            for identity in identities(STANDARD if number == STDOUT else path, STDOUT):
                if identity in known:
                    raise SimtbedError(f"{printable(path)}: {name} and {known[identity][1]} are the same file")
                known[identity] = (path, name)
            if number is not None and number in taken:
                raise SimtbedError(f"{printable(path)}: {name} and {taken[number]} are the same file")
            if number is not None:
                taken[number] = name


def _number(path: Path) -> int | None:
    return STDOUT if path == STANDARD else descriptor_of(path)


class _Kept(io.RawIOBase):
    """The raw end of an output: its errors name it, and what was abandoned swallows the rest of its buffers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.abandoned = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.abandoned:
            return len(memoryview(data).cast("B"))
        try:
            return self.put(data)
        except OSError as error:
            raise self.failed(error) from None

    def put(self, data: Any) -> int:
        """Write some of the bytes; how many. Raises OSError."""
        raise NotImplementedError

    def close_whole(self) -> None:
        """All bytes were put: they are where they cannot be lost. Raises SimtbedError."""
        raise NotImplementedError

    def failed(self, error: OSError) -> SimtbedError:
        return failure(f"{printable(self.path)}: cannot be written", error)


class _Regular(_Kept):
    """A file under another name beside the final one, locked for as long as this process lives."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.renamed, self.aside = False, ""
        self.length, self.begun = 0, 0  # bytes put, and those of them that the disk was told of
        try:
            self.final = os.path.realpath(path, strict=False)
            if os.path.islink(self.final):
                raise SimtbedError(f"{printable(path)}: cannot be written: the links lead in a circle")
            folder, name = os.path.split(self.final)
            if not os.path.isdir(folder):
                raise SimtbedError(f"{printable(path)}: there is no folder {printable(path.parent)}")
            self.before = _there(self.final)
            if self.before and not os.access(self.final, os.W_OK):
                raise SimtbedError(f"{printable(path)}: cannot be written: Permission denied")
            self.start = os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:LONGEST_NAME])}.")
            _remove_leftovers(self.start)
            self.unfinished, self.number = self._create()
        except (OSError, ValueError) as error:
            raise self.failed(error if isinstance(error, OSError) else OSError(0, str(error))) from None

    def _create(self) -> tuple[str, int]:
        """A new file with a name that nobody can guess, and the descriptor that holds its lock."""
        mode = 0o666 if self.before is None else stat.S_IMODE(self.before.st_mode) & 0o600
        while True:
            name = f"{self.start}{os.urandom(8).hex()}{SUFFIX}"
            register(name)
            number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with suppress(OSError):  # a file system without locks: its leftovers stay
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(number).st_nlink:
                return name, number
            os.close(number)  # taken for a leftover before it was locked

    def put(self, data: Any) -> int:
        count = os.write(self.number, data)
        self.length += count
        if self.length - self.begun >= AT_ONCE:
            begin_to_write(self.number, self.begun, self.length - self.begun)
            self.begun = self.length
        return count

    def close_whole(self) -> None:
        """The bytes are on the disk, with the owner and the mode of the file that they replace."""
        try:
            if self.before is not None:
                with suppress(OSError):  # not ours to give away
                    os.fchown(self.number, self.before.st_uid, self.before.st_gid)
                os.fchmod(self.number, stat.S_IMODE(self.before.st_mode))
            os.fsync(self.number)
        except OSError as error:
            raise self.failed(error) from None

    def rename(self, alone: bool) -> None:
        """Take the final name; the old file is kept until all is done."""
        try:
            if os.path.lexists(self.final):
                self._keep_old(alone)
            os.replace(self.unfinished, self.final)
            self.renamed = True
        except OSError as error:
            raise self.failed(error) from None

    def _keep_old(self, alone: bool) -> None:
        aside = f"{self.unfinished}.old"
        register(aside)
        try:
            os.link(self.final, aside)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            if alone:  # a file system without links: to replace it at once is worth more than to undo it
                return
            os.rename(self.final, aside)
        self.aside = aside

    def undo(self) -> None:
        """The final name is what it was before `rename`."""
        if self.aside and (self.renamed or not os.path.lexists(self.final)):
            os.replace(self.aside, self.final)
        elif self.renamed and self.before is None:
            os.unlink(self.final)

    def discard(self) -> None:
        """Nothing is left but what has its final name."""
        if self.number >= 0:
            if not self.renamed:
                with suppress(OSError):
                    os.unlink(self.unfinished)
            if self.aside:
                with suppress(OSError):
                    os.unlink(self.aside)
            os.close(self.number)
            self.number = -1
            forget(self.unfinished)
            forget(f"{self.unfinished}.old")


def _there(path: str) -> os.stat_result | None:
    """What is under a name now. Raises OSError where a name cannot be, such as one that is too long."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


class _Special(_Kept):
    """What cannot be replaced: it waits in a file without a name, and is written when all is there."""

    def __init__(self, path: Path, number: int | None) -> None:
        super().__init__(path)
        self.standard = number == STDOUT
        if self.standard:
            self.path = Path("standard output")
        try:
            if self.standard:
                if sys.stdout is None:
                    raise SimtbedError("standard output: cannot be written: it is closed")
                self.number = -1
            elif number is not None and number >= 0:
                self.number = os.dup(number)
            else:
                self.number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            self.waiting = temporary()
        except OSError as error:
            raise self.failed(error) from None

    def put(self, data: Any) -> int:
        return self.waiting.write(data)

    def close_whole(self) -> None:
        try:
            self.waiting.seek(0)
            if self.standard:
                flush_standard_output()
                shutil.copyfileobj(self.waiting, sys.stdout.buffer, BUFFER)
                sys.stdout.buffer.flush()
            else:
                with open(self.number, "wb", closefd=False) as file:
                    shutil.copyfileobj(self.waiting, file, BUFFER)
        except BrokenPipeError:
            raise  # of a reader that has seen enough
        except OSError as error:
            raise self.failed(error) from None

    def discard(self) -> None:
        with suppress(OSError):
            self.waiting.close()
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


def _rename(files: list[_Regular]) -> None:
    """All files take their final names, or none does."""
    with held():
        try:
            for file in files:
                file.rename(alone=len(files) == 1)
            for folder in {os.path.dirname(file.final) for file in files}:
                _synchronise(folder)
            check()
        except BaseException:
            for file in reversed(files):
                file.undo()
            raise


def _synchronise(folder: str) -> None:
    """The names in a folder are on the disk, where its file system knows how."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _remove_leftovers(start: str) -> None:
    """Remove unfinished files of the same output whose processes are dead: nobody holds their locks."""
    folder, name = os.path.split(start)
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(name) and entry.name.endswith(SUFFIX)]
    for path in found:
        with suppress(OSError):
            number = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                there = os.fstat(number)
                if stat.S_ISREG(there.st_mode) and there.st_uid == os.geteuid():
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
            finally:
                os.close(number)


def write(path: Path, parts: Iterable[str | bytes]) -> None:
    """Write one file, whole or not at all. Raises SimtbedError."""
    with Outputs({"output": path}) as outputs:
        outputs["output"].writelines(part.encode() if isinstance(part, str) else part for part in parts)
