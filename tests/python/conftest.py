"""Inputs of the tests: the demo's molecule, also with all its atoms, and a
curve that was simulated from it."""
import os
import subprocess
from pathlib import Path

import pytest

from tessera_saxs._library import program

DEMO = Path(__file__).parents[2] / "configs" / "demo" / "two_domain.pdb"


def tessera(*arguments):
    """Standard output of the program."""
    return subprocess.run([program(), *map(str, arguments)], check=True,
                          capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with model.pdb (bodies), atoms.pdb, and exp.dat."""
    path = tmp_path_factory.mktemp("input")
    model = DEMO.read_text()
    (path / "model.pdb").write_text(model)
    (path / "atoms.pdb").write_text(model.replace(" SC ", " CG "))
    (path / "truth.yaml").write_text(
        'structure: {file: model.pdb, flexible: ["A:51-64"]}\n'
        "contrast: {c2: 0}\n"
        "simulate: {points: 40, q_range: [0.02, 0.3]}\n")
    tessera("simulate", path / "truth.yaml", "--output", path / "exp.dat")
    return path


@pytest.fixture
def model(folder):
    return str(folder / "model.pdb")


@pytest.fixture
def atoms(folder):
    return str(folder / "atoms.pdb")


@pytest.fixture
def curve(folder):
    return str(folder / "exp.dat")


@pytest.fixture
def work(folder, tmp_path, monkeypatch):
    """An empty working folder with links to the inputs."""
    for file in folder.iterdir():
        os.symlink(file, tmp_path / file.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
