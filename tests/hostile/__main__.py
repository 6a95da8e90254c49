"""`python -m tests.hostile [TRIALS [FIRST [FORMAT ...]]]`: mutated files of every format; 1 where one is mishandled."""

import faulthandler
import sys
import tempfile
from pathlib import Path

from tests.hostile.formats import FORMATS
from tests.hostile.mutations import mutated
from tests.hostile.trial import mishandled


def main(trials: int, first: int, names: list[str]) -> int:
    faulthandler.enable()
    result = 0
    for form in FORMATS:
        if names and form.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(first, first + trials):
                data = form.wrap(mutated(form.good[seed % len(form.good)], seed))
                Path(folder, "given").write_bytes(data)  # there, should the process be killed
                if wrong := mishandled(form, data, Path(folder)):
                    result += 1
                    print(f"{form.name} {seed}: {wrong}"[:600], flush=True)
        print(f"{form.name}: {trials} trials", flush=True)
    return int(result > 0)


if __name__ == "__main__":
    trials, first, *names = [*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]]
    sys.exit(main(int(trials), int(first), names))
