"""`simtbed explain` and `simtbed list` by paper: every variant says what it is, from one source."""

import json
from pathlib import Path

import pytest
from simtbed.kernels import FAMILIES
from simtbed.reports.explanation import explanation

from tests.reports.conftest import Simtbed


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_explained_is_a_variant_and_whole(family: str) -> None:
    item = FAMILIES[family]
    explained = item.explained()
    assert set(explained) in (set(), set(item.variants))  # all of a family, or none yet
    for result in explained.values():
        assert result.section and result.mapping and result.layout


def test_every_variant_says_what_it_computes() -> None:
    for family in FAMILIES.values():
        for variant in family.variants.values():
            result = explanation(family, variant)
            assert result.recurrence and result.kernel


def test_explain_prints_its_sections(simtbed: Simtbed) -> None:
    text = simtbed("explain", "pairhmm/intertask-tile4").out
    assert text.startswith("pairhmm/intertask-tile4\n\n  one thread a pair, 4 rows")
    for section in (
        "Paper\n",
        "Figure 4, Table 2",
        "M(i,j) = lambda",
        "Threads\n",
        "M[k][t]  I[k][t]  D[k][t]  MID[k][t]",
    ):
        assert section in text
    assert json.loads(simtbed("explain", "wavefront", "--json").out)["section"] == "III.B, Figure 2; III.C, Figure 3"
    assert "there is no variant 'nothing'" in simtbed("explain", "nothing").refused()
    assert "there is no variant 'sfs/wavefront'" in simtbed("explain", "sfs/wavefront").refused()


def test_list_groups_variants_by_paper(simtbed: Simtbed) -> None:
    lines = simtbed("list").out.splitlines()
    ren = next(at for at, line in enumerate(lines) if line.startswith("Ren, Bertels, Al-Ars 2018"))
    after = next(at for at in range(ren, len(lines)) if not lines[at])
    assert any("intertask-tile2 " in line for line in lines[ren:after])
    assert not any("intertask-tile2-registers" in line for line in lines[ren:after])
    ours = next(at for at, line in enumerate(lines) if line.startswith("Ours"))
    assert any("intertask-tile2-registers" in line for line in lines[ours:])


def test_an_ambiguous_variant_and_a_notebook_are_refused(
    simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "packed is ambiguous: write alignment/packed or correction/packed" in simtbed("explain", "packed").refused()
    monkeypatch.chdir(tmp_path)
    Path("steps.ipynb").write_text("{}")
    assert "steps.ipynb is a notebook: write it as a script by jupyter" in simtbed("check", "steps.ipynb").refused()
