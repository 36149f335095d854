"""docs/notebook.ipynb runs with the package."""
import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
PATH = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def test_notebook():
    notebook = nbformat.read(PATH, 4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are committed"
    nbclient.NotebookClient(notebook, timeout=300, resources={
        "metadata": {"path": str(PATH.parent)}}).execute()
    if "TESSERA_NOTEBOOK" in os.environ:  # for the site: make docs
        nbformat.write(notebook, os.environ["TESSERA_NOTEBOOK"])
