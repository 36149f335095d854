"""Curves, fits, structures and profiles after moves, against sums in numpy and
the program."""
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tessera_saxs
from conftest import tessera
from tessera_saxs import _library
from tessera_saxs import (Curve, DataError, Engine, MissingFileError,
                          Profile, Structure, TesseraError, UsageError, fit,
                          profile)

Q = np.linspace(0, 0.5, 26)


def debye(q, xyz):
    """Sum of sinc(q r) over all pairs (Debye 1915)."""
    r = np.linalg.norm(xyz[:, None] - xyz, axis=-1)
    return np.array([np.sinc(k * r / np.pi).sum() for k in q])


def program_curve(*arguments):
    tessera("profile", *arguments, "--n-q", 26, "--output", "curve.out")
    return np.loadtxt("curve.out")[:, 1]


# ---- curves ----


def test_cluster_is_the_debye_sum():
    """Equal atoms without hydrogens and, at c1 = c2 = 0, without solvent: the
    curve is that of one atom times the sum. 1e-6: the sum is one of plane
    waves in directions on the sphere, made for 1e-6."""
    xyz = np.random.default_rng(1).uniform(-15, 15, (12, 3))
    one = profile(xyz[:1], ["Zn"], Q, c1=0)
    assert one[0] == pytest.approx(30**2, rel=2e-3)  # a fit of the electrons
    np.testing.assert_allclose(profile(xyz, ["ZN"] * 12, Q, c1=0),
                               one * debye(Q, xyz), rtol=1e-6)


def test_curve_is_the_programs(work):
    """To the digits of the file."""
    for how, options in (({}, []), ({"c2": 1.5}, ["--c2", 1.5]),
                         ({"density": 0.36}, ["--solvent-density", 0.36]),
                         ({"d2o": 0.4, "exchange": 0.8,
                           "deuterated": {"A": 0.5}},
                          ["--radiation", "neutron", "--d2o", 0.4,
                           "--exchange", 0.8, "--deuterated", "A=0.5"])):
        np.testing.assert_allclose(profile("atoms.pdb", Q, **how),
                                   program_curve("atoms.pdb", *options),
                                   rtol=1e-7)
    np.testing.assert_allclose(
        profile("model.pdb", Q, scatterers="two", device="reference"),
        program_curve("model.pdb", "-b", "two", "--device", "reference"),
        rtol=1e-7)


def test_frames(atoms):
    """Frames, arrays and files are the same atoms."""
    structure = Structure(atoms)
    turned = structure.xyz @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1.0]])
    moved = structure.xyz
    moved[:300] += 20.0
    curves = profile(atoms, Q, xyz=[structure.xyz, turned, moved], c2=1)
    assert curves.shape == (3, 26)
    np.testing.assert_array_equal(curves[0], profile(atoms, Q, c2=1))
    # Turned, the layer is built on another grid.
    np.testing.assert_allclose(curves[1], curves[0], rtol=0.02)
    assert abs(curves[2] / curves[0] - 1).max() > 0.05
    np.testing.assert_array_equal(profile(structure, Q, xyz=moved, c2=1),
                                  curves[2])


def test_bad_frame_is_named(atoms):
    xyz = np.stack([Structure(atoms).xyz] * 3)
    xyz[2, 5, 1] = math.nan
    with pytest.raises(UsageError, match="frame 2: .*nan"):
        profile(atoms, Q, xyz=xyz)


def test_frames_are_interrupted(atoms):
    script = ("import numpy as np, tessera_saxs as t\n"
              f"s = t.Structure({atoms!r})\n"
              "print('begins', flush=True)\n"
              "t.profile(s, [0, 0.5], xyz=np.stack([s.xyz] * 3000))")
    child = subprocess.Popen([sys.executable, "-c", script], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == "begins\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert "KeyboardInterrupt" in child.communicate()[1]
    assert time.monotonic() - began < 10


def test_array_of_frames():
    xyz = np.random.default_rng(2).uniform(-9, 9, (3, 5, 3))
    many = profile(xyz, ["Fe"] * 5, Q)
    assert many.shape == (3, 26)
    for one, frame in zip(many, xyz):
        np.testing.assert_array_equal(one, profile(frame, ["Fe"] * 5, Q))


def test_numbers_of_a_profile(atoms):
    found = Profile(atoms)
    told = json.loads(tessera("profile", atoms, "--json"))["structures"][0]
    for name, key in (("mass", "mass"), ("volume", "displaced_volume"),
                      ("rg", "rg_model"), ("d_max", "d_max"),
                      ("absolute", "cm_per_mg_ml")):
        assert getattr(found, name) == pytest.approx(told[key], rel=1e-7)


@pytest.mark.parametrize("error, call", [
    (MissingFileError, lambda a: profile("no.pdb", Q)),
    (FileNotFoundError, lambda a: profile("no.pdb", Q)),
    (DataError, lambda a: profile(np.zeros((1, 3)), ["Xx"], Q)),
    (DataError, lambda a: profile(np.zeros((2, 3)), ["C", "C"], Q)),
    (UsageError, lambda a: profile(np.zeros((2, 3)), ["C"], Q)),
    (UsageError, lambda a: profile(np.zeros((2, 2)), ["C", "C"], Q)),
    (UsageError, lambda a: profile([[0, 0, math.nan]], ["C"], Q)),
    (UsageError, lambda a: profile(np.eye(3), Q)),
    (UsageError, lambda a: profile(a)),
    (UsageError, lambda a: profile(a, [])),
    (UsageError, lambda a: profile(a, [0.1, math.nan])),
    (UsageError, lambda a: profile(a, [-0.1, 0.1])),
    (UsageError, lambda a: profile(a, [0.1, 20.0])),
    (UsageError, lambda a: profile(a, 0.1)),
    (UsageError, lambda a: profile(a, ["a"])),
    (UsageError, lambda a: profile(a, Q, c2=math.nan)),
    (UsageError, lambda a: profile(a, Q, c1="1")),
    (UsageError, lambda a: profile(a, Q, scatterers="three")),
    (UsageError, lambda a: profile(np.eye(3) * 4, ["C"] * 3, Q,
                                   scatterers="two")),
    (UsageError, lambda a: profile(a, Q, xyz=np.eye(3), scatterers="one")),
    (UsageError, lambda a: profile(a, Q, d2o=1.5)),
    (UsageError, lambda a: profile(a, Q, d2o=0, density=0.35)),
    (UsageError, lambda a: profile(a, Q, scatterers="one", d2o=0)),
    (UsageError, lambda a: profile(a, Q, xyz=np.zeros((7, 3)))),
    (UsageError, lambda a: profile(object(), Q)),
    (TesseraError, lambda a: profile(a, Q, device="no such device")),
    (UsageError, lambda a: Profile(a, q_max=0.2).intensity(Q)),
    (TypeError, lambda a: profile(a, Q, radiation="neutron")),
])
def test_wrong_input_is_refused_with_a_message(atoms, error, call):
    with pytest.raises(error, match=r"\w+ .*\w"):
        call(atoms)


def test_threads(atoms):
    """Threads share a profiler and get the bits of one thread."""
    frames = Structure(atoms).xyz + np.random.default_rng(3).normal(
        0, 0.02, (4, 1, 3))
    want = [profile(atoms, Q, xyz=frame, c2=1) for frame in frames]
    found = [None] * 4

    def work(k):
        try:
            profile("no.pdb", Q)
        except MissingFileError as error:  # messages are those of the thread
            assert "no.pdb" in str(error)
        found[k] = profile(atoms, Q, xyz=frames[k], c2=1)

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found, want)


# ---- fits ----


def test_fit_is_the_programs(atoms, curve):
    found = fit(atoms, curve)
    told = json.loads(tessera("profile", atoms, "--data", curve, "--json"))
    for name in ("chi2", "reduced_chi2", "scale", "background", "c1", "c2",
                 "cormap_p"):
        assert getattr(found, name) == pytest.approx(
            told["structures"][0][name], rel=1e-7), name
    residual = (found.data.intensity - found.curve) / found.data.sigma
    assert (residual**2).mean() == pytest.approx(found.chi2)
    np.testing.assert_allclose(
        found.scale * found.profile.intensity(found.data.q, found.c1, found.c2)
        + found.background, found.curve, rtol=1e-9)


def test_neutron_fit_is_the_programs(atoms, tmp_path):
    """Smeared with the fourth column, as usual for neutrons."""
    q = np.linspace(0.01, 0.3, 50)
    made = profile(atoms, q, d2o=0.7)
    file = tmp_path / "sans.dat"
    np.savetxt(file, np.column_stack([q, made, 0.01 * made, 0.1 * q + 0.004]))
    told = json.loads(tessera("profile", atoms, "--data", file, "--json",
                              "--radiation", "neutron", "--d2o", 0.7))
    assert fit(atoms, file, d2o=0.7).chi2 == pytest.approx(
        told["structures"][0]["chi2"], rel=1e-6)
    assert fit(atoms, Curve(file), d2o=0.7).chi2 < 1e-3 < 0.1 < \
        told["structures"][0]["chi2"]


def test_fit_finds_what_made_the_data(atoms):
    """A curve without noise gives back scale, background, c1 and c2."""
    q = np.linspace(0.01, 0.4, 60)
    made = 3e-6 * profile(atoms, q, c1=1.02, c2=1.3) + 0.4
    found = fit(atoms, (q, made, 0.01 * made))
    assert (found.c1, found.c2, found.scale, found.background) == \
        pytest.approx((1.02, 1.3, 3e-6, 0.4), rel=2e-3)
    assert found.chi2 < 1e-3
    fixed = fit(atoms, Curve(q, made, 0.01 * made), c1=1.05, c2=(2, 3),
                background=0)
    assert (fixed.c1, fixed.c2_at, fixed.background) == (1.05, -1, 0)
    assert fixed.chi2 > 1


def test_curve_of_arrays_and_file(curve):
    q, intensity, sigma = np.loadtxt(curve, unpack=True)
    for found in (Curve(curve, q_min=0.05, q_max=0.2),
                  Curve(q, intensity, sigma, q_min=0.05, q_max=0.2)):
        use = (q >= 0.05) & (q <= 0.2)
        np.testing.assert_allclose(found.q, q[use], rtol=1e-12)
        np.testing.assert_allclose(found.intensity, intensity[use], rtol=1e-12)
        np.testing.assert_allclose(found.sigma, sigma[use], rtol=1e-12)


@pytest.mark.parametrize("error, call", [
    (MissingFileError, lambda a, c: fit(a, "no.dat")),
    (DataError, lambda a, c: fit(a, a)),
    (DataError, lambda a, c: Curve(Q, Q + 1, 0 * Q)),
    (UsageError, lambda a, c: Curve(Q, Q + math.nan, Q + 1)),
    (UsageError, lambda a, c: Curve(Q, Q[1:], Q + 1)),
    (UsageError, lambda a, c: Curve(Q)),
    (UsageError, lambda a, c: fit(a, np.ones((40, 3)))),
    (UsageError, lambda a, c: fit(a, Curve(c), q_max=0.1)),
    (UsageError, lambda a, c: Curve(Q[:3], Q[:3], Q[:3] + 1)),
    (UsageError, lambda a, c: fit(a, c, c1=(1.05, 0.95))),
    (UsageError, lambda a, c: fit(a, c, c2=(0, 1, 2))),
    (UsageError, lambda a, c: fit(a, c, background=math.inf)),
    (UsageError, lambda a, c: Profile(a, q_max=0.1).fit(Curve(c))),
])
def test_wrong_data_is_refused_with_a_message(atoms, curve, error, call):
    with pytest.raises(error, match=r"\w+ .*\w"):
        call(atoms, curve)


def test_plot(atoms, curve, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    found = fit(atoms, curve)
    figure = found.plot()
    line = figure.axes[0].get_lines()[-1]
    np.testing.assert_array_equal(line.get_ydata(), found.curve)
    figure.savefig(tmp_path / "fit.png")


# ---- structures of other packages ----


def mdanalysis(path):
    return pytest.importorskip("MDAnalysis").Universe(path)


def gemmi(path):
    return pytest.importorskip("gemmi").read_structure(path)


def biopython(path):
    pdb = pytest.importorskip("Bio.PDB")
    return pdb.PDBParser(QUIET=True).get_structure("x", path)


PACKAGES = pytest.mark.parametrize("read", [mdanalysis, gemmi, biopython])
ALTERNATE = """\
ATOM      1  N   SER A  52A     11.104   6.134  -6.504  1.00  0.00           N
ATOM      2  CA  SER A  52A     11.639   6.071  -5.147  1.00  0.00           C
ATOM      3  CB ASER A  52A     12.980   6.790  -5.080  0.30  0.00           C
ATOM      4  CB BSER A  52A     11.100   4.900  -4.360  0.70  0.00           C
ATOM      5  C   SER A  52A     10.660   6.690  -4.160  1.00  0.00           C
ATOM      6  O   SER A  52A     10.250   7.840  -4.340  1.00  0.00           O
ATOM      7  N   SER A  52B     10.300   5.930  -3.130  1.00  0.00           N
ATOM      8  CA  SER A  52B      9.370   6.400  -2.110  1.00  0.00           C
ATOM      9  CB  SER A  52B      9.180   5.340  -1.030  1.00  0.00           C
ATOM     10  C   SER A  52B      9.860   7.700  -1.480  1.00  0.00           C
ATOM     11  O   SER A  52B     11.060   7.880  -1.260  1.00  0.00           O
HETATM   12  O   HOH A 101       0.000   0.000   0.000  1.00  0.00           O
"""


@PACKAGES
def test_objects_are_the_file(atoms, read):
    """1e-5: coordinates of MDAnalysis and Biopython have single precision."""
    np.testing.assert_allclose(profile(read(atoms), Q, c2=1),
                               profile(atoms, Q, c2=1), rtol=1e-5)


@PACKAGES
def test_alternates_insertion_codes_and_waters(tmp_path, read):
    """The more frequent alternate, two residues of one number, no water."""
    path = tmp_path / "x.pdb"
    path.write_text(ALTERNATE)
    found, want = Structure(read(str(path))), Structure(path)
    np.testing.assert_allclose(found.xyz, want.xyz, atol=1e-5)
    np.testing.assert_allclose(profile(found, Q), profile(path, Q), rtol=1e-5)
    assert len(want) == 10
    if read is not biopython:  # it leaves the other alternate out itself
        assert list(found.index) == list(want.index) == [
            0, 1, 3, 4, 5, 6, 7, 8, 9, 10]
        frame = np.zeros((1, 12, 3))
        frame[0, want.index] = want.xyz
        np.testing.assert_allclose(profile(found, Q, xyz=frame),
                                   [profile(path, Q)], rtol=1e-5)


def test_trajectory_of_mdanalysis(atoms):
    universe = mdanalysis(atoms)
    curve = profile(universe.atoms, Q)
    universe.atoms.positions = universe.atoms.positions + [0, 0, 30]
    universe.atoms[:100].positions += [9, 0, 0]
    moved = profile(universe, Q)
    assert abs(moved / curve - 1).max() > 0.01
    np.testing.assert_allclose(
        profile(atoms, Q, xyz=universe.atoms.positions), moved, rtol=1e-5)


def test_object_without_elements_is_refused(atoms):
    universe = mdanalysis(atoms)
    universe.del_TopologyAttr("elements")
    with pytest.raises(UsageError, match="guess_TopologyAttrs"):
        Structure(universe)


def test_columns_beside_coordinates(atoms):
    """Names of residues and atoms decide on the hydrogens."""
    universe = mdanalysis(atoms)
    a = universe.atoms
    named = Structure(a.positions, a.elements, names=a.names,
                      residues=a.resnames, numbers=a.resids, chains=a.chainIDs)
    np.testing.assert_allclose(profile(named, Q), profile(atoms, Q), rtol=1e-5)
    for wrong in ({"names": a.names}, {"chains": ["A"]},
                  {"names": a.names, "residues": a.resnames, "numbers": [1]}):
        with pytest.raises(UsageError):
            Structure(a.positions, a.elements, **wrong)


# ---- profiles after moves ----


@pytest.mark.filterwarnings("ignore:no OpenCL device")
@pytest.mark.parametrize("device, error", [("reference", 1e-12),
                                           ("auto", 1e-5)])
def test_engine_is_the_debye_sum(device, error):
    """After random proposals, accepted and rejected, of several systems. The
    error, of I(0), is that of double and of single precision."""
    random = np.random.default_rng(4)
    types = random.integers(0, 2, 60)
    table = random.uniform(1, 9, (2, 2, 20))
    q = 0.02 * np.arange(20)
    xyz = random.uniform(-20, 20, (3, 60, 3))

    def want(xyz):
        r = np.linalg.norm(xyz[:, None] - xyz, axis=-1)
        f = table[:, types]
        return np.array([[f[a, :, k] @ np.sinc(q[k] * r / np.pi) @ f[b, :, k]
                          for k in range(20)]
                         for a, b in ((0, 0), (0, 1), (1, 1))])

    def check(partials, xyz):
        np.testing.assert_allclose(partials, want(xyz), rtol=0,
                                   atol=error * want(xyz).max())

    engine = Engine(types, table, 0.02, systems=3, device=device)
    for system in range(3):
        check(engine.set(xyz[system], system), xyz[system])
    for step in range(8):
        systems = random.permutation(3)[:1 + step % 3]
        moved, moves = xyz.copy(), []
        for system in systems:
            first, count = random.integers(0, 40), random.integers(1, 20)
            body = slice(first, first + count)
            moved[system, body] += random.uniform(-3, 3, 3)
            if step % 2:
                moved[system, body] += random.uniform(-1, 1, (count, 3))
            moves.append((system, [(first, count, (step + 1) % 2)],
                          moved[system, body]))
        found = engine.propose(moves)
        for system, partials in zip(systems, found):
            check(partials, moved[system])
            if random.uniform() < 0.5:
                engine.accept(system)
                xyz[system] = moved[system]
            else:
                engine.reject(system)
            check(engine.partials(system), xyz[system])


def test_engine_of_a_file(model, curve):
    """Its profile is that of the file; 1e-4: from the engine's grid of q."""
    engine = Engine(model, d_bound=150, q_max=0.3, device="reference")
    assert engine.residues[0] == 0 and len(engine.xyz) == engine.n_body
    found = engine.profile(engine.set(engine.xyz))
    q = np.linspace(0, 0.3, 26)
    np.testing.assert_allclose(
        found.intensity(q, c2=1),
        profile(model, q, c2=1, scatterers="two", device="reference"),
        rtol=1e-4)
    assert found.fit(Curve(curve)).chi2 == pytest.approx(
        fit(model, curve, scatterers="two", device="reference").chi2, rel=1e-3)


@pytest.mark.parametrize("scatterers", ["two", "one"])
def test_engine_of_residues(model, scatterers):
    """Beads without atoms: the curve of the file, but for the hydration, which
    is estimated."""
    how = {"d_bound": 150, "scatterers": scatterers, "device": "reference"}
    engine = Engine(model, **how)
    names = [line[17:20] for line in Path(model).read_text().splitlines()
             if line.startswith("ATOM") and line[12:16] == " CA "]
    beads = Engine(names, xyz=engine.xyz, **how)
    np.testing.assert_array_equal(beads.residues, engine.residues)
    curves = [e.profile(e.set(engine.xyz)) for e in (engine, beads)]
    q = np.linspace(0, 0.3, 26)
    for c2, error in ((0, 1e-12), (1, 0.05)):
        want, found = (c.intensity(q, c2=c2) for c in curves)
        np.testing.assert_allclose(found, want, rtol=error)
    assert curves[1].mass == pytest.approx(curves[0].mass)
    with pytest.raises(DataError, match="XYZ"):
        Engine(["XYZ"], xyz=[[0, 0, 0]], **how)


def test_without_a_device(model):
    """The slow exact engine, with a warning."""
    script = ("import tessera_saxs\n"
              f"e = tessera_saxs.Engine({model!r}, d_bound=150)\n"
              "print(e.device, e.set(e.xyz)[0, 0] > 0)")
    found = subprocess.run([sys.executable, "-c", script], check=True,
                           capture_output=True, text=True,
                           env={**os.environ, "OCL_ICD_VENDORS": "/none"})
    assert found.stdout.startswith("reference") and "True" in found.stdout
    assert found.stderr.count("no OpenCL device") == 1


def test_engine_refuses(model):
    engine = Engine(model, d_bound=150, device="reference")
    engine.set(engine.xyz)
    before = engine.partials()
    for call in (lambda: engine.set(engine.xyz[1:]),
                 lambda: engine.set(engine.xyz, 1),
                 lambda: engine.set(engine.xyz * 10),
                 lambda: engine.propose([(0, [(0, 2, 0)], engine.xyz[:1])]),
                 lambda: engine.propose([(0, [(0, 1)], engine.xyz[:1])]),
                 lambda: engine.propose([(0, [(9999, 1, 0)], [[0, 0, 0]])]),
                 lambda: engine.propose([(0, [(0, 1, 0)], [[0, 0, math.nan]])]),
                 lambda: engine.propose([(3, [(0, 1, 0)], [[0, 0, 0]])]),
                 lambda: Engine(model, d_bound=-1),
                 lambda: Engine(model, d_bound=150, scatterers="three"),
                 lambda: Engine(model, d_bound=150, scatterers="atoms"),
                 lambda: Engine("no.pdb", d_bound=150)):
        with pytest.raises(TesseraError, match=r"\w+ .*\w"):
            call()
    np.testing.assert_array_equal(engine.partials(), before)
    assert engine.propose([]).shape == (0, *before.shape)


def test_prototypes_are_those_of_the_header():
    header = (Path(__file__).parents[2] / "include/tessera.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    declared = {
        name: (result, arguments) for result, name, arguments in re.findall(
            r"TESSERA_API\s+([\w\s*]+?)\s*\btessera_(\w+)\(([^)]*)\);", header)}

    def letter(text):
        text = " ".join(text.split())
        if "*" in text:
            return "s" if re.fullmatch(r"const char ?\* ?\w*", text) else "p"
        kind = text.split()[0]
        return {"int": "i", "int64_t": "l", "double": "d", "void": "-"}[kind]

    assert len(_library._PROTOTYPES) > 40
    for name, prototype in _library._PROTOTYPES.items():
        result, arguments = declared[name]
        want = "".join(letter(a) for a in arguments.split(",")).strip("-")
        have, _, returned = prototype.partition(":")
        assert have == want and (returned or "i") == letter(result), name


def test_version():
    assert tessera_saxs.__version__ in tessera("--version")
