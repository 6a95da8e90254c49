"""The state of compilations for the emulator."""

from __future__ import annotations

import threading

from .positions import Positions


class Marks(threading.local):
    """The state of a compilation in this thread. target, position: the variable that is being assigned, and the number of its position."""

    active = False
    target = ""
    position = 0


MARKS = Marks()
POSITIONS = Positions()
