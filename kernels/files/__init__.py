"""The one door for files: what is read is opened, unpacked and limited here; what is written is whole or not there."""

from .inputs import MEMORY, MEMORY_OF_BATCHES, Input, contents, opened, opened_again
from .outputs import Outputs, write
from .places import STANDARD, DiskError, flush_standard_output, is_file_name
from .signals import Stopped, held, watch
from .text import printable, shown
from .waiting import temporary

__all__ = [
    "MEMORY",
    "MEMORY_OF_BATCHES",
    "STANDARD",
    "DiskError",
    "Input",
    "Outputs",
    "Stopped",
    "contents",
    "flush_standard_output",
    "held",
    "is_file_name",
    "opened",
    "opened_again",
    "printable",
    "shown",
    "temporary",
    "watch",
    "write",
]
