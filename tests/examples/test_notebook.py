"""The tutorial notebook: it runs from start to end, and its outputs are those in the file."""

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = [pytest.mark.slow, pytest.mark.integration]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "tutorial.ipynb"


def executed() -> Any:
    """Return the notebook with the outputs of a new kernel process."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output["data"].pop("text/plain", None)  # its text has the temporary files of cells
            if "traceback" in output:
                output["traceback"] = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output["traceback"]]
    notebook.metadata.pop("language_info", None)  # the version of Python
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """Return the outputs of each cell; a kernel under load sends a text in several pieces."""
    result = []
    for cell in notebook.cells:
        merged = list[Any]()
        for output in cell.get("outputs", []):
            if merged and output.output_type == "stream" and merged[-1].get("name") == output.name:
                merged[-1] = {**merged[-1], "text": merged[-1]["text"] + output.text}
            else:
                merged.append(output)
        result.append(merged)
    return result


def test_pieces_of_a_text_are_one_output() -> None:
    pieces = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("a", "b\n")]
    cell = nbformat.v4.new_code_cell(outputs=[*pieces, nbformat.v4.new_output("stream", name="stderr", text="c")])
    ((first, second),) = outputs(nbformat.v4.new_notebook(cells=[cell]))
    assert (first["text"], second["text"]) == ("ab\n", "c")


def test_the_notebook_runs_and_shows_its_outputs(request: pytest.FixtureRequest) -> None:
    notebook = executed()
    if request.config.getoption("--update-golden"):
        nbformat.write(notebook, NOTEBOOK)
    assert outputs(notebook) == outputs(nbformat.read(NOTEBOOK, as_version=4))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    error = next(output for cell in code for output in cell.outputs if output.output_type == "error")
    assert "In[2]:11:27: race on shared memory" in "\n".join(error["traceback"])
    shown = [output.data for cell in code for output in cell.outputs if output.output_type == "execute_result"]
    assert len(shown) == 4 and all("text/html" in data for data in shown)
    printed = "".join(o.text for cell in code for o in cell.outputs if o.output_type == "stream")
    assert "[ 2016.  6112. 10208. 14304.]" in printed and "In[5]:11" in printed  # the kernel defined again
