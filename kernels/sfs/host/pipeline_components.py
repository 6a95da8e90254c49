"""Data parsing and post-processing of GAMA on the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from simtbed import DeviceArray, empty

from ...family import Launcher
from ..components import BLOCK, FIELD, parse, summarise
from .problem import Floats

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Text:
    """Lines of Beagle likelihoods of a fixed width. starts: place of the first likelihood of each site."""

    letters: Bytes
    starts: npt.NDArray[np.int64]
    individuals: int


@dataclass(frozen=True)
class Summary:
    """Post-processed sites. expected: frequency of the minor allele. variable: probability that the site varies. most: the
    most likely number of minor alleles."""

    expected: Floats
    variable: Floats
    most: npt.NDArray[np.int32]


def printed(likelihoods: Floats) -> Text:
    """Print likelihoods, (sites, N, 3), from 0 up to but below 10, with six decimals, as ANGSD does."""
    lines = [
        f"1_{position}\tA\tC\t" + "\t".join(f"{value:.6f}" for value in site.ravel()) + "\n"
        for position, site in enumerate(likelihoods, 1)
    ]
    width = likelihoods.shape[1] * 3 * FIELD
    ends = np.cumsum([len(line) for line in lines])
    return Text(np.frombuffer("".join(lines).encode(), np.uint8), ends - width, likelihoods.shape[1])


def parsed(text: Text, launcher: Launcher) -> Floats:
    """Return the likelihoods, (sites, N, 3), parsed on the GPU."""
    sites, values = len(text.starts), 3 * text.individuals
    out = DeviceArray(empty(sites * values, "f64"))
    args = {"text": text.letters, "starts": text.starts, "likelihoods": out, "values": values, "FIELD": FIELD}
    launcher.launch(parse, grid=(-(-values // BLOCK), sites), block=BLOCK, args=args)
    return out.numpy().reshape(sites, text.individuals, 3)


def summarised(posteriors: Floats, launcher: Launcher) -> Summary:
    """Return the summary of normalised sites, (sites, 2 N + 1), computed on the GPU."""
    sites, width = posteriors.shape
    result = launcher.launch(
        summarise,
        grid=sites,
        block=BLOCK,
        args={
            "posteriors": posteriors.ravel(), "expected": empty(sites, "f64"), "variable": empty(sites, "f64"),
            "most": empty(sites, "i32"), "alleles": width - 1, "BLOCK": BLOCK,
        },
    )  # fmt: skip
    return Summary(np.asarray(result["expected"]), np.asarray(result["variable"]), np.asarray(result["most"]))
