"""Input and output of files. Inputs are decompressed and limited in size; outputs are written completely or not at all."""

from .folders import new_folder
from .inputs import MEMORY, MEMORY_OF_BATCHES, Input, contents, open_input, open_repeatedly
from .outputs import Outputs, write
from .paths import STANDARD, DiskError, flush_standard_output, is_file_name
from .signals import Stopped, defer_signals, watch
from .temporary_files import temporary_file
from .text import excerpt

__all__ = [
    "MEMORY", "MEMORY_OF_BATCHES", "STANDARD", "DiskError", "Input", "Outputs", "Stopped", "contents",
    "defer_signals", "excerpt", "flush_standard_output", "is_file_name", "new_folder", "open_input",
    "open_repeatedly", "temporary_file", "watch", "write",
]  # fmt: skip
