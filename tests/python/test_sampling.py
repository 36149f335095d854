"""Runs, solve, and what they leave: the same as of the program."""
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import tessera_saxs
from conftest import tessera
from tessera_saxs import (ConfigError, DataError, Interrupted,
                          MissingFileError, TesseraError, UsageError)

PRIOR = """\
seed: 1
structure: {sequence: AAAAAAAAAAAA}
sampler: {chains: 2, start: file, thin: 20, draws: 100, warmup: 20}
device: {use: reference, threads: 1}
"""
FEW = {"sampler.warmup": 20, "sampler.chains": 2, "sampler.thin": 1,
       "sampler.temperatures": 4, "sampler.draws": 60}
#: Ends only when it is stopped.
LONG = {"sampler.draws": 10_000_000, "sampler.thin": 200}


@pytest.fixture
def prior(work):
    (work / "prior.yaml").write_text(PRIOR)
    return "prior.yaml"


# ---- runs ----


def test_run_has_the_programs_draws(prior):
    run = tessera_saxs.run(prior, "one", progress=False,
                           settings={"sampler.draws": 50})
    tessera("run", prior, "-o", "two", "--set", "sampler.draws=50")
    other = tessera_saxs.open("two")
    assert "rg" in run.columns() and run.columns() == other.columns()
    for column in run.columns():
        assert run.draws(column).shape == (2, 50)
        np.testing.assert_array_equal(run.draws(column), other.draws(column))
    assert run.draws("acceptance_by_move", "sample_stats").ndim == 3
    assert run.summary()["rg"]["mean"] == pytest.approx(
        run.draws("rg").mean(), rel=1e-6)
    assert run.status()["state"] == "finished" and not run.converged
    assert "Not converged" in run.verdict and "<p>" in run._repr_html_()
    assert run.curves == []


def test_extended_run(prior):
    run = tessera_saxs.run(prior, "one", progress=False)
    before = run.draws("rg")
    run = tessera_saxs.resume("one", draws=120, progress=False)
    assert run.draws("rg").shape == (2, 120)
    np.testing.assert_array_equal(run.draws("rg")[:, :100], before)


@pytest.mark.parametrize("error, call", [
    (MissingFileError, lambda: tessera_saxs.run("no.yaml")),
    (ConfigError, lambda: tessera_saxs.run(
        "prior.yaml", settings={"sampler.chain": 3})),
    (UsageError, lambda: tessera_saxs.run("prior.yaml", wrong=3)),
    (TesseraError, lambda: tessera_saxs.resume("no")),
    (MissingFileError, lambda: tessera_saxs.open("no")),
    (MissingFileError, lambda: tessera_saxs.open(".")),
    (MissingFileError, lambda: tessera_saxs.solve("no.pdb", "exp.dat")),
    (TesseraError, lambda: tessera_saxs.solve("model.pdb", "model.pdb")),
])
def test_wrong_input_is_refused_with_a_message(prior, error, call, capfd):
    with pytest.raises(error, match=r"\w+ .*\w"):
        call()


def test_wrong_columns_are_refused(prior):
    run = tessera_saxs.run(prior, "one", progress=False)
    with pytest.raises(DataError, match="nothing"):
        run.draws("nothing")
    with pytest.raises(KeyError):
        run.draws("rg", "nothing")
    with pytest.raises(MissingFileError):
        run.trajectory(2)


# ---- progress and stops ----


def check_stopped(folder, prior):
    """The stored draws are the first ones of the run, which goes on."""
    run = tessera_saxs.open(folder)
    draws = run.draws("rg")
    assert run.status()["state"] == "interrupted" and draws.shape[1] > 0
    whole = tessera_saxs.run(prior, "whole", progress=False, settings={
        **LONG, "sampler.draws": draws.shape[1] + 10})
    np.testing.assert_array_equal(draws,
                                  whole.draws("rg")[:, :draws.shape[1]])
    resumed = tessera_saxs.resume(folder, draws=draws.shape[1] + 10,
                                  progress=False)
    np.testing.assert_array_equal(resumed.draws("rg"), whole.draws("rg"))


def test_function_shows_progress_and_stops(prior):
    lines = []

    def show(line):
        lines.append(line)
        return any("sampling" in line for line in lines)  # again and again

    with pytest.raises(Interrupted, match="tessera resume") as stop:
        tessera_saxs.run(prior, "my run", settings=LONG, progress=show)
    assert str(stop.value.folder) == "my run"
    assert any("steps/s" in line and "left" in line for line in lines)
    check_stopped("my run", prior)


def test_solve_is_stopped_and_repeated(work):
    def stop(at):
        with pytest.raises(Interrupted):
            tessera_saxs.solve("model.pdb", "exp.dat", output="mine", states=1,
                               settings=FEW, sample=True,
                               progress=lambda line: at in line)

    stop("exp.dat")  # while init reads
    stop("1 state")
    found = tessera_saxs.solve("model.pdb", "exp.dat", output="mine", states=1,
                               settings=FEW, sample=True, progress=False)
    assert found.run.draws("rg").shape == (2, 60)


def test_failed_function_ends_the_run(prior):
    def show(line):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tessera_saxs.run(prior, "one", settings=LONG, progress=show)


@pytest.mark.parametrize("is_group", [True, False])
def test_ctrl_c(prior, work, is_group):
    """In a terminal the signal also reaches the program; a notebook's stop
    button reaches Python alone."""
    (work / "script.py").write_text(
        "import sys, tessera_saxs\n"
        "try:\n"
        f"    tessera_saxs.run('prior.yaml', 'one', settings={LONG})\n"
        "except KeyboardInterrupt as stop:\n"
        "    print(type(stop).__name__, stop.folder)\n")
    ours, theirs = os.openpty()
    child = subprocess.Popen([sys.executable, "script.py"], stderr=theirs,
                             stdout=subprocess.PIPE, start_new_session=True)
    os.close(theirs)
    shown = ""
    while "sampling" not in shown:
        shown += os.read(ours, 4096).decode()
    (os.killpg if is_group else os.kill)(child.pid, signal.SIGINT)
    try:
        while os.read(ours, 4096):
            pass
    except OSError:  # closed by the child
        pass
    os.close(ours)
    assert child.communicate(timeout=60)[0] == b"Interrupted one\n"
    assert child.returncode == 0 and "\r" in shown
    check_stopped("one", prior)


def test_killed_python(prior, work):
    """The program ends with it, in good order."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import tessera_saxs\n"
         f"tessera_saxs.run('prior.yaml', 'one', settings={LONG})"],
        stderr=subprocess.PIPE)
    assert any(b"sampling" in line for line in child.stderr)
    child.kill()
    child.communicate()
    end = time.monotonic() + 60
    while tessera_saxs.open("one").status()["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.1)
    check_stopped("one", prior)


def test_log_without_a_terminal(prior, capfd):
    tessera_saxs.run(prior, "one")
    shown = capfd.readouterr().err
    assert "output in one" in shown and "\r" not in shown
    tessera_saxs.run(prior, "two", progress=False)
    assert capfd.readouterr().err == ""


# ---- results ----


@pytest.fixture(scope="module")
def solution(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("solve") / "mine"
    return tessera_saxs.solve(folder / "model.pdb", folder / "exp.dat",
                              output=output, states=2, settings=FEW,
                              progress=False, sample=True)


def test_solution(solution):
    assert [run.folder.name for run in solution.runs] == ["1", "2"]
    assert solution.run.folder.name == str(solution.result["states"])
    assert "rigid model" in solution.verdict
    again = tessera_saxs.open(solution.folder)
    assert again.result == solution.result
    assert "<p>" in again._repr_html_()
    report = solution.report()
    assert report.path.parent == solution.run.folder
    assert report._repr_html_().startswith("<iframe")


def test_curves_are_those_of_the_trace(solution, curve):
    q, intensity, sigma = np.loadtxt(curve, unpack=True)
    run = solution.runs[1]
    found, = run.curves
    np.testing.assert_allclose(found.q, q, rtol=1e-12)
    np.testing.assert_allclose(found.intensity, intensity, rtol=1e-12)
    np.testing.assert_allclose(found.sigma, sigma, rtol=1e-12)
    assert found.draws.shape == (120, len(q)) and found.rigid.shape == q.shape
    # chi2 is that of the best scale, draws scatter about it.
    chi2 = (((found.draws - intensity) / sigma)**2).mean(axis=1)
    ratio = chi2 / run.draws("chi2").ravel()
    assert ratio.min() > 1 - 1e-9 and np.median(ratio) < 1.2


def test_two_curves(work, curve):
    """The second curve's columns end in _2."""
    (work / "two.yaml").write_text(
        'structure: {file: model.pdb, flexible: ["A:51-64"]}\n'
        "contrast: {c2: 0}\n"
        "data: [{file: exp.dat}, {file: exp.dat, q_range: [0.05, 0.2]}]\n")
    run = tessera_saxs.run("two.yaml", "two", settings=FEW, progress=False)
    one, two = run.curves
    assert one.q[0] < 0.05 <= two.q[0] and two.q[-1] <= 0.2 < one.q[-1]
    assert two.draws.shape == (120, len(two.q))


def test_arviz(solution):
    pytest.importorskip("arviz")
    run = solution.runs[0]
    data = run.to_arviz()
    np.testing.assert_array_equal(np.asarray(data.posterior["rg"]),
                                  run.draws("rg"))


@pytest.mark.filterwarnings("ignore:Reader has no dt")
def test_trajectory(solution):
    pytest.importorskip("MDAnalysis")
    pytest.importorskip("h5py")
    run = solution.runs[1]
    assert len(run.trajectory(2).trajectory) == len(
        run.trajectory(1).trajectory) > 2
    with pytest.raises(MissingFileError):
        run.trajectory()
    one = solution.runs[0].trajectory()
    alpha = one.select_atoms("name CA")
    rg = [alpha.radius_of_gyration() for frame in one.trajectory]
    stored = solution.runs[0].draws("rg").ravel()
    stride = stored.size // len(rg)
    # Of CA atoms and of all bodies: alike.
    assert np.corrcoef(rg, stored[stride - 1::stride])[0, 1] > 0.9


def write_mmcif(universe, path):
    """Frames as models of an mmCIF file."""
    with open(path, "w") as to:
        to.write("data_x\nloop_\n" + "".join(
            f"_atom_site.{name}\n" for name in (
                "group_PDB id type_symbol label_atom_id label_comp_id "
                "label_asym_id label_seq_id auth_asym_id auth_seq_id Cartn_x "
                "Cartn_y Cartn_z occupancy B_iso_or_equiv "
                "pdbx_PDB_model_num").split()))
        for frame in universe.trajectory:
            for i, atom in enumerate(universe.atoms):
                to.write(f"ATOM {i + 1} {atom.name[0]} {atom.name} "
                         f"{atom.resname} A {atom.resid} A {atom.resid} "
                         "{:.4f} {:.4f} {:.4f} 1 0 {}\n".format(
                             *atom.position, frame.frame + 1))


@pytest.mark.filterwarnings("ignore")
def test_pool(atoms, curve, work):
    """Models and frames of all formats are the same pool, to their precision."""
    MDAnalysis = pytest.importorskip("MDAnalysis")
    pytest.importorskip("h5py")
    universe = MDAnalysis.Universe(atoms)
    xyz = universe.atoms.positions
    far = (universe.atoms.resids > 57)[:, None] * np.array([8.0, 0, 0], "f4")
    universe.load_new(np.array([xyz, xyz + far, xyz + 2 * far]))
    few = {"device": "reference", "members": "1:2", "copies": "none",
           "draws": 64, "progress": False}
    universe.atoms.write("models.pdb", frames="all")
    write_mmcif(universe, "models.cif")
    pools = {"universe": (universe, {}), "models.pdb": ("models.pdb", {}),
             "models.cif": ("models.cif", {})}
    of = universe
    for kind in ("trr", "dcd", "h5md", "xtc"):
        with MDAnalysis.Writer(f"frames.{kind}", len(of.atoms)) as to:
            for _ in of.trajectory:
                to.write(of.atoms)
        of = MDAnalysis.Universe(atoms, f"frames.{kind}")
        pools[f"{kind} by MDAnalysis"] = of, {}
        if kind in ("dcd", "h5md"):
            pools[kind] = atoms, {"trajectory": f"frames.{kind}"}
    told, size = {}, {}
    for name, (files, more) in pools.items():
        told[name] = tessera_saxs.pool(files, curve, output=f"of {name}", **more, **few)
        size[name] = np.loadtxt(f"of {name}/weights.tsv", usecols=(2, 3),
                                skiprows=2, delimiter="\t")
    other = told["universe"]
    for name in pools:  # XTC has 0.01 Angstrom, PDB 0.001
        assert told[name]["conformations"] == 3, name
        assert size[name] == pytest.approx(size["universe"], abs=0.03), name
        assert told[name]["ensembles"][0]["log_z"] == pytest.approx(
            other["ensembles"][0]["log_z"], abs=0.5), name
    with pytest.raises(tessera_saxs.TesseraError, match="MDAnalysis"):
        tessera_saxs.pool(atoms, curve, trajectory="frames.xtc", **few)
    assert os.path.exists("of universe/members.pdb")
    assert other["rg"]["q5"] <= other["rg"]["median"] <= other["rg"]["q95"]
    with pytest.raises(UsageError, match="one conformation"):
        tessera_saxs.pool(atoms, curve, **few)


def test_bar_of_a_notebook(prior, monkeypatch):
    """A bar that is updated in place, with the program's line beside it."""
    shown = []
    display = types.SimpleNamespace(
        HTML=str, display=lambda page, display_id: types.SimpleNamespace(
            update=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(
        display=display, get_ipython=lambda: types.SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    tessera_saxs.run(prior, "one", settings={"sampler.draws": 2000})
    bars = [page for page in shown if "<progress max=100 value=" in page]
    assert bars and "steps/s" in bars[-1]
