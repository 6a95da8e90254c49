"""Refused arguments of a launch, collected so that one error names all of them and the errors of the compilation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import CompileError, LaunchError


class Refusals:
    """The errors of a launch's arguments."""

    def __init__(self) -> None:
        self.errors: list[LaunchError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a LaunchError of the block. Other errors are raised, such as those of missing memory or a missing GPU."""
        try:
            yield
        except LaunchError as error:
            if type(error) is not LaunchError:
                raise
            self.errors.append(error)

    def raise_all(self, compile: Callable[[], object] | None = None) -> None:
        """Raise the collected errors as one LaunchError, one line each; nothing without an error.

        compile: compiles the kernel for the other arguments; its errors are added.
        """
        if not self.errors:
            return
        texts = list(dict.fromkeys(map(str, self.errors)))
        if compile is not None:
            try:
                compile()
            except CompileError as error:
                texts.append(str(error))
            except LaunchError:  # the argument that another one depends on is refused
                pass
        if len(texts) == 1:
            raise self.errors[0] from None
        raise LaunchError("\n".join(texts)) from None
