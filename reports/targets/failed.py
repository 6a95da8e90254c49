"""The exception for a target that fails without a launch."""


class TargetFailed(Exception):
    """A program exited with an error before its first launch. It has printed the reason."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
