"""Exported conformations as MDAnalysis sees them.

    python export_files.py RUN_DIRECTORY DRAWS.pdb INPUT.pdb

DRAWS.pdb are the frames 0, 2, 4 ... of chain 0 with all atoms. Names and order
are the input's; backbone atoms are at their places in the trajectory, up to one
motion of the whole and the digits of PDB; bonds are as long as in the input.
"""
import sys
import warnings

import MDAnalysis
import numpy as np
from MDAnalysis.analysis.align import rotation_matrix

warnings.filterwarnings("ignore")
folder, draws, start = sys.argv[1:]
ours = MDAnalysis.Universe(draws)
source = MDAnalysis.Universe(start).select_atoms("protein and not name H*")
drawn = MDAnalysis.Universe(f"{folder}/model.pdb",
                            f"{folder}/trajectory-000.h5", format="H5MD")
assert list(ours.atoms.names) == list(source.names)
assert list(ours.atoms.resids) == list(source.resids)
assert list(ours.atoms.resnames) == list(source.resnames)



def backbone(universe):
    """By name: the input may have another order within a residue."""
    return np.concatenate([universe.select_atoms(f"name {name}").positions
                           for name in ("N", "CA", "C", "O")]).astype(float)


pairs = np.array([(i, j) for i in range(len(source))
                  for j in range(i + 1, min(i + 30, len(source)))])
x = source.positions.astype(float)
length = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
bonds, length = pairs[length < 1.9], length[length < 1.9]
assert len(bonds) > 0.9 * len(source)
frames = range(0, len(drawn.trajectory), 2)
assert len(ours.trajectory) == len(frames)
for model, frame in zip(ours.trajectory, frames):
    drawn.trajectory[frame]
    a, b = backbone(ours), backbone(drawn)
    assert a.shape == b.shape
    _, rmsd = rotation_matrix(a - a.mean(0), b - b.mean(0))
    assert rmsd < 2e-3, rmsd
    x = ours.atoms.positions.astype(float)
    now = np.linalg.norm(x[bonds[:, 0]] - x[bonds[:, 1]], axis=1)
    worst = np.abs(now - length).max()
    assert worst < 5e-3, worst
    assert model.frame == frame // 2
b_factor = ours.atoms.tempfactors
assert (b_factor > 0).all() and np.ptp(b_factor) > 0
print(f"{len(frames)} models of {len(source)} atoms, {len(bonds)} bonds")
