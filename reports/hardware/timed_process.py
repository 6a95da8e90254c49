"""Process profiled by Nsight Compute: makes each timed launch twice, the second with warm caches."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from simtbed import SimtbedError
from simtbed.engines.cuda.driver import DeviceLaunch

from .cases import results_of
from .launches import Timed


def main(log: str, listed: str, cases: Sequence[str]) -> None:
    """Make the launches of `cases` with the names in the JSON file `listed`, on the GPU; append each name to `log`."""
    names = json.loads(Path(listed).read_text(encoding="utf-8"))
    by_name: dict[str, Timed] = {}
    launches = results_of(cases)
    while len(by_name) < len(names):  # the last launches are expensive to construct
        case = next(launches)
        if case.name in names:
            by_name[case.name] = case
    with Path(log).open("w", encoding="utf-8") as file:
        for name in names:
            case = by_name[name]
            arguments = case.make()
            request = case.request(arguments)
            resident = {**arguments, **{n: a for n, a in request.device_arrays.items() if n not in case.restored}}
            try:
                with DeviceLaunch(request) as launch:
                    print(name, file=file, flush=True)
                    launch.run(1)
                with DeviceLaunch(case.request(resident)) as launch:
                    launch.run(1)
            except SimtbedError as error:
                print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
