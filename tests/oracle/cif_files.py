"""Exported CIF files as python-ihm, MolViewSpec and gemmi see them.

    python cif_files.py RUN_DIRECTORY

ihm.cif, draws.pdb and scene.mvsj are in the current folder: three draws of a run with two
states and two curves, of two equal chains, a strand of two nucleotides and two ions.
"""
import io
import json
import sys
import urllib.parse

import h5py
import ihm.dumper
import ihm.reader
import numpy as np
from molviewspec.nodes import State

N_RESIDUE, N_MODEL = 114, 6
with h5py.File(sys.argv[1] + "/trace.h5") as trace:
    weight = [trace[f"posterior/weight_{s}"][()].mean() for s in (1, 2)]
    chi2 = [trace[f"posterior/{name}"][()] for name in ("chi2", "chi2_2")]
with open("draws.pdb") as file:
    lines = file.read().splitlines()
labels = [line.split()[2:] for line in lines if line.startswith("REMARK 999 chain")]
labels = [(int(l[1]), int(l[3]), int(l[5])) for l in labels]  # chain, draw, state
atoms = [line for line in lines if line[:6] in ("ATOM  ", "HETATM")]

# ---- PDB-IHM ----
with open("ihm.cif") as file:
    (system,) = ihm.reader.read(file)
assert [(e.type, len(e.sequence)) for e in system.entities] == [
    ("polymer", N_RESIDUE), ("polymer", 2), ("non-polymer", 1)]
assert [(a._id, a.entity._id) for a in system.asym_units[:3]] == [
    ("A", "1"), ("B", "1"), ("D", "2")]
assert [a.entity.sequence[0].id for a in system.asym_units[3:]] == ["ZN", "ZN"]
(group,) = system.state_groups
assert np.allclose([s.population_fraction for s in group], weight, atol=1e-4)
models = {m._id: m for _, m in system._all_models()}
assert sorted(models) == [str(i + 1) for i in range(N_MODEL)]
for state, members in enumerate(group, 1):
    assert [int(m._id) - 1 for m in members[0]] == [
        i for i, l in enumerate(labels) if l[2] == state]
for i, model in enumerate(models[str(k + 1)] for k in range(N_MODEL)):
    own = atoms[i * len(atoms) // N_MODEL:(i + 1) * len(atoms) // N_MODEL]
    there = list(model.get_atoms())
    xyz = np.array([[float(a[30 + 8 * k:38 + 8 * k]) for k in range(3)] for a in own])
    assert np.allclose([[a.x, a.y, a.z] for a in there], xyz, atol=1e-3)
    assert [a.het for a in there] == [a.startswith("HETATM") for a in own]
    assert max(a.seq_id for a in there if a.asym_unit._id == "B") == N_RESIDUE
assert len(system.restraints) == 2
for restraint, value, name in zip(system.restraints, chi2, ("good.dat", "second.dat")):
    assert restraint.multi_state and restraint.dataset.data_type == "SAS data"
    assert restraint.dataset.location.path == name
    for model, fit in restraint.fits.items():
        chain, draw, _ = labels[int(model._id) - 1]
        assert abs(fit.chi_value - value[chain, draw] ** 0.5) < 1e-4
assert [(e.num_models, e.num_models_deposited) for e in system.ensembles] == [(20, 3)] * 2
starts = list(system._all_starting_models())
assert {s.dataset.location.path for s in starts} == {"model.pdb"}
assert [s.name for s in system.software] == ["tessera"]
assert "Markov" in list(system._all_protocols())[0].steps[0].method
ihm.dumper.write(io.StringIO(), [system])  # checks ranges, assemblies, representation

# ---- MolViewSpec ----
with open("scene.mvsj") as file:
    scene = json.load(file)
State(**scene)  # raises for unknown nodes and parameters
assert scene["metadata"]["version"] and scene["metadata"]["timestamp"]
download = scene["root"]["children"][0]
models = urllib.parse.unquote(download["params"]["url"].split(",", 1)[1])
(inside,) = ihm.reader.read(io.StringIO(models))
shown = download["children"][0]["children"]
assert [s["params"]["model_index"] for s in shown] == list(range(N_MODEL))
colours = {}
for node, label in zip(shown, labels):
    paint = node["children"][1]["children"][0]["children"]
    assert paint[0]["kind"] == "color" and "selector" not in paint[0]["params"]
    colours.setdefault(label[2], []).append([p["params"]["color"] for p in paint])
    ranges = [s for p in paint[1:] for s in p["params"]["selector"]]
    assert all(1 <= r["beg_label_seq_id"] <= r["end_label_seq_id"] <= N_RESIDUE for r in ranges)
    assert {r["label_asym_id"] for r in ranges} == {"A", "B"}
assert all(c == same[0] for same in colours.values() for c in same)
assert not set(colours[1][0]) & set(colours[2][0])
