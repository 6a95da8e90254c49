"""Atomic output: all files of a command are replaced, or none is changed."""

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
from simtbed.escaping import printable

from .bgzf import BgzfWriter
from .paths import STANDARD, STDIN, STDOUT, descriptor_of, failure, flush_standard_output, identities, status
from .signals import check, defer_signals, forget, register
from .temporary_files import temporary_file
from .writeback import start_writeback

SUFFIX = ".unfinished"
LONGEST_NAME = 180
"""Maximum bytes of a file's name in the name of its unfinished file, so that the suffix fits."""
BUFFER, AT_ONCE = 1 << 20, 1 << 25
"""Bytes per write, and bytes per start of writeback."""
OTHER_PACKINGS = (".bz2", ".xz", ".zst")
"""File name suffixes of compressions that are supported only for reading."""


class Outputs:
    """The outputs of a command, by their names on the command line; `-` is standard output, None is omitted.

    Entering it raises SimtbedError for an output that is an input or another output or cannot be written. Leaving it writes all
    outputs; after an error no file has changed. A new file with the same mode replaces a regular file; a symbolic link then refers
    to the new file. Any other target, such as a pipe, is written at the end. Names in .gz are compressed as BGZF.
    """

    def __init__(self, targets: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
        self.targets = {name: path for name, path in targets.items() if path is not None}
        self.inputs = [path for path in inputs if path is not None]
        self.files: dict[str, BinaryIO] = {}
        self._raw_outputs: dict[io.BufferedIOBase, _RegularOutput | _SpecialOutput] = {}
        self._stack = ExitStack()

    @property
    def take_stdout(self) -> bool:
        """Return whether an output is standard output."""
        return any(_descriptor(path) == STDOUT for path in self.targets.values())

    def __enter__(self) -> Outputs:
        self._refuse_overlaps()
        for path in self.targets.values():
            if path.name.endswith(OTHER_PACKINGS):
                raise SimtbedError(f"{printable(path)}: compressed outputs are written as BGZF, with a name in .gz")
        with ExitStack() as stack:
            for name, path in self.targets.items():
                descriptor = _descriptor(path)
                info = status(path, STDOUT)
                regular = descriptor is None and (info is None or stat.S_ISREG(info.st_mode))
                output = _RegularOutput(path) if regular else _SpecialOutput(path, descriptor)
                stack.callback(output.discard)
                buffer = stack.enter_context(io.BufferedWriter(output, BUFFER))
                self._raw_outputs[buffer] = output
                self.files[name] = cast(BinaryIO, buffer)
                if path.name.endswith(".gz"):
                    self.files[name] = cast(BinaryIO, stack.enter_context(BgzfWriter(cast(BinaryIO, buffer))))
            self._stack = stack.pop_all()
        return self

    def __getitem__(self, name: str) -> BinaryIO:
        return self.files[name]

    def get(self, name: str) -> BinaryIO | None:
        """Return the file of an output, None if it is omitted."""
        return self.files.get(name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            try:
                if error is None:
                    self._finish()
            finally:
                for output in self._raw_outputs.values():
                    output.abandoned = True

    def _finish(self) -> None:
        for file in self.files.values():
            if isinstance(file, BgzfWriter):
                file.close()
        regular = [output for output in self._raw_outputs.values() if isinstance(output, _RegularOutput)]
        for buffer in self._raw_outputs:
            buffer.flush()
        for output in [
            *regular,
            *(output for output in self._raw_outputs.values() if not isinstance(output, _RegularOutput)),
        ]:
            output.commit()
        _rename(regular)

    def _refuse_overlaps(self) -> None:
        names_by_identity = {
            identity: (path, "the input") for path in self.inputs for identity in identities(path, STDIN)
        }
        standard = [path for path in self.inputs if path == STANDARD]
        if len(standard) > 1:
            raise SimtbedError("standard input can be read once: two inputs are '-'")
        names_by_descriptor: dict[int, str] = {}
        for name, path in self.targets.items():
            descriptor = _descriptor(path)
            for identity in identities(STANDARD if descriptor == STDOUT else path, STDOUT):
                if identity in names_by_identity:
                    raise SimtbedError(
                        f"{printable(path)}: {name} and {names_by_identity[identity][1]} are the same file"
                    )
                names_by_identity[identity] = (path, name)
            if descriptor is not None and descriptor in names_by_descriptor:
                raise SimtbedError(f"{printable(path)}: {name} and {names_by_descriptor[descriptor]} are the same file")
            if descriptor is not None:
                names_by_descriptor[descriptor] = name


def _descriptor(path: Path) -> int | None:
    return STDOUT if path == STANDARD else descriptor_of(path)


class _RawOutput(io.RawIOBase):
    """Raw end of an output. Errors name the output; an abandoned output discards the rest of its buffers."""

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
        """Write some of the bytes; return their number. Raise OSError if that fails."""
        raise NotImplementedError

    def commit(self) -> None:
        """Make the complete output durable. Raise SimtbedError if that fails."""
        raise NotImplementedError

    def failed(self, error: OSError) -> SimtbedError:
        return failure(f"{printable(self.path)}: cannot be written", error)


class _RegularOutput(_RawOutput):
    """A file under a temporary name in the same folder, locked for the lifetime of this process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.renamed, self.backup = False, ""
        self.length, self.writeback_end = 0, 0  # bytes written, and those with started writeback
        try:
            self.final = os.path.realpath(path, strict=False)
            if os.path.islink(self.final):
                raise SimtbedError(f"{printable(path)}: cannot be written: the symbolic links form a cycle")
            folder, name = os.path.split(self.final)
            if not os.path.isdir(folder):
                raise SimtbedError(f"{printable(path)}: there is no folder {printable(path.parent)}")
            self.old_status = _stat(self.final)
            if self.old_status and not os.access(self.final, os.W_OK):
                raise SimtbedError(f"{printable(path)}: cannot be written: Permission denied")
            self.start = os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:LONGEST_NAME])}.")
            _remove_leftovers(self.start)
            self.unfinished, self.descriptor = self._create()
        except (OSError, ValueError) as error:
            raise self.failed(error if isinstance(error, OSError) else OSError(0, str(error))) from None

    def _create(self) -> tuple[str, int]:
        """Create a file with a random name; return the name and the descriptor of its lock."""
        mode = 0o666 if self.old_status is None else stat.S_IMODE(self.old_status.st_mode) & 0o600
        while True:
            name = f"{self.start}{os.urandom(8).hex()}{SUFFIX}"
            register(name)
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with suppress(OSError):  # a file system without locks: leftover files remain
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
            os.close(descriptor)  # another process removed it as a leftover before the lock

    def put(self, data: Any) -> int:
        count = os.write(self.descriptor, data)
        self.length += count
        if self.length - self.writeback_end >= AT_ONCE:
            start_writeback(self.descriptor, self.writeback_end, self.length - self.writeback_end)
            self.writeback_end = self.length
        return count

    def commit(self) -> None:
        """Write the bytes to the disk, with the owner and the mode of the replaced file."""
        try:
            if self.old_status is not None:
                with suppress(OSError):  # changing the owner is not permitted
                    os.fchown(self.descriptor, self.old_status.st_uid, self.old_status.st_gid)
                os.fchmod(self.descriptor, stat.S_IMODE(self.old_status.st_mode))
            os.fsync(self.descriptor)
        except OSError as error:
            raise self.failed(error) from None

    def rename(self, alone: bool) -> None:
        """Rename to the final name; the old file is backed up until all outputs are renamed."""
        try:
            if os.path.lexists(self.final):
                self._back_up(alone)
            os.replace(self.unfinished, self.final)
            self.renamed = True
        except OSError as error:
            raise self.failed(error) from None

    def _back_up(self, alone: bool) -> None:
        backup = f"{self.unfinished}.old"
        register(backup)
        try:
            os.link(self.final, backup)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            if alone:  # a file system without links: an atomic replacement matters more than an undo
                return
            os.rename(self.final, backup)
        self.backup = backup

    def undo(self) -> None:
        """Restore the state before `rename`."""
        if self.backup and (self.renamed or not os.path.lexists(self.final)):
            os.replace(self.backup, self.final)
        elif self.renamed and self.old_status is None:
            os.unlink(self.final)

    def discard(self) -> None:
        """Remove the unfinished file and the backup."""
        if self.descriptor >= 0:
            if not self.renamed:
                with suppress(OSError):
                    os.unlink(self.unfinished)
            if self.backup:
                with suppress(OSError):
                    os.unlink(self.backup)
            os.close(self.descriptor)
            self.descriptor = -1
            forget(self.unfinished)
            forget(f"{self.unfinished}.old")


def _stat(path: str) -> os.stat_result | None:
    """Return the status of a file, None if it does not exist. Raise OSError for an invalid name, such as one that is too long."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


class _SpecialOutput(_RawOutput):
    """A target that cannot be replaced: its bytes are collected in a temporary file and written at the end."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        super().__init__(path)
        self.standard = descriptor == STDOUT
        if self.standard:
            self.path = Path("standard output")
        try:
            if self.standard:
                if sys.stdout is None:
                    raise SimtbedError("standard output: cannot be written: it is closed")
                self.descriptor = -1
            elif descriptor is not None and descriptor >= 0:
                self.descriptor = os.dup(descriptor)
            else:
                self.descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            self.waiting = temporary_file()
        except OSError as error:
            raise self.failed(error) from None

    def put(self, data: Any) -> int:
        return self.waiting.write(data)

    def commit(self) -> None:
        try:
            self.waiting.seek(0)
            if self.standard:
                flush_standard_output()
                shutil.copyfileobj(self.waiting, sys.stdout.buffer, BUFFER)
                sys.stdout.buffer.flush()
            else:
                with open(self.descriptor, "wb", closefd=False) as file:
                    shutil.copyfileobj(self.waiting, file, BUFFER)
        except BrokenPipeError:
            raise  # the reader closed the pipe
        except OSError as error:
            raise self.failed(error) from None

    def discard(self) -> None:
        with suppress(OSError):
            self.waiting.close()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _rename(files: list[_RegularOutput]) -> None:
    """Rename all files, or none."""
    with defer_signals():
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
    """Write the names of a folder to the disk, if its file system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(start: str) -> None:
    """Remove unfinished files of the same output whose lock is free: their processes have ended."""
    folder, name = os.path.split(start)
    with os.scandir(folder) as entries:
        leftovers = [entry.path for entry in entries if entry.name.startswith(name) and entry.name.endswith(SUFFIX)]
    for path in leftovers:
        with suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                info = os.fstat(descriptor)
                if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
            finally:
                os.close(descriptor)


def write(path: Path, chunks: Iterable[str | bytes]) -> None:
    """Write one file, completely or not at all. Raise SimtbedError if that fails."""
    with Outputs({"output": path}) as outputs:
        outputs["output"].writelines(chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks)
